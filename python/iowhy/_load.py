"""Reads records. Invariant: what is no whole record of a known format is an error that says what it is instead."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import records
from ._binary import Error
from ._object import Object, Record


def load(path: str | os.PathLike[str]) -> records.AnyRecord:
    """The record in a file that `--json FILE` wrote. `record.kind` says which it is.

    Raises `Error` for a file that is cut off, is no record, or is one of a later format; `OSError` where it cannot be read.
    """
    return parse(Path(path).read_bytes(), os.fspath(path))


def parse(text: bytes, name: str) -> records.AnyRecord:
    """The record in a text. `name` is what errors call it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Error(f"`{name}` {_complaint(text, error)}; make it again with `iowhy --json FILE`") from error
    if not isinstance(value, dict) or "kind" not in value or not isinstance(value.get("schema"), int):
        raise Error(f"`{name}` is JSON, but no record of iowhy; `iowhy --json FILE` makes one")
    version = records.VERSION
    if value["schema"] > records.SCHEMA:
        raise Error(
            f"`{name}` has format {value['schema']}; this iowhy ({version}) reads up to {records.SCHEMA}. "
            f"Read it with iowhy {value.get('iowhy', 'of a later version')}, which made it, or a later one"
        )
    kind = records.KINDS.get(value["kind"]) if isinstance(value["kind"], str) else None
    if kind is None:
        raise Error(f"`{name}` is a record of the kind `{value['kind']}`, which this iowhy ({version}) does not know")
    record: records.AnyRecord = _object(kind, value)
    record._json = text
    return record


def _complaint(text: bytes, error: Exception) -> str:
    if not text.lstrip().startswith(b"{"):
        return f"is no JSON record: {error}"
    if isinstance(error, json.JSONDecodeError):
        # Whatever is missing is missing at the end: a token, or the end of a text.
        rest = error.doc[error.pos :].strip()
        if not rest or error.msg.startswith("Unterminated") or not text.rstrip().endswith(b"}"):
            return "ends in the middle: it was cut off, or is still being written"
    return f"is no JSON: {error}"


def _object(kind: type[Any], value: dict[str, Any]) -> Any:
    hints = kind.__annotations__
    return kind(**{key: _typed(hints.get(key, ""), item) for key, item in value.items()})


def _typed(hint: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(hint, item) for item in value]
    if not isinstance(value, dict):
        return value
    is_map, kind = _meaning(hint)
    if is_map:
        return {key: _object(kind, item) if isinstance(item, dict) else item for key, item in value.items()}
    return _object(kind, value)


@lru_cache(maxsize=None)
def _meaning(hint: str) -> tuple[bool, type[Any]]:
    """Whether objects with this annotation are maps, and the class that it names."""
    named = (getattr(records, word, None) for word in re.findall(r"\w+", hint))
    kinds = (kind for kind in named if isinstance(kind, type) and issubclass(kind, Object))
    return "dict[" in hint, next(kinds, Object)
