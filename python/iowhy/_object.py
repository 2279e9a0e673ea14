"""What records are made of: objects whose attributes are the keys of the JSON, and tables of them."""

from __future__ import annotations

import html
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ._binary import Error, binary

if TYPE_CHECKING:
    import pandas


if TYPE_CHECKING:

    class Namespace:
        """`SimpleNamespace` has every attribute for a type checker, and would hide wrong keys."""

else:
    Namespace = SimpleNamespace


class Object(Namespace):
    """A JSON object: each key is an attribute, `vars()` has them all. An optional key that is absent is `None`."""


class Record(Object):
    """The result of a command. Shown as its report in a notebook."""

    __slots__ = ("_json",)
    _json: bytes
    command: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of `{self.command}`>"

    def tables(self) -> dict[str, list[Object]]:
        """The lists that `iowhy export --table` knows, by name."""
        found: dict[str, list[Object]] = {}

        def look(value: Object, path: str) -> None:
            for key, item in vars(value).items():
                if isinstance(item, list) and item and isinstance(item[0], Object):
                    found[path + key] = item
                elif isinstance(item, Object):
                    look(item, f"{path}{key}.")

        look(self, "")
        return found

    def to_rows(self, table: str) -> list[dict[str, Any]]:
        """A table with the rows and columns of `iowhy export --table`: a figure each, a dot for each level of keys.

        Raises `Error` where the record has no such table.
        """
        tables = self.tables()
        if table not in tables:
            raise Error(f"the record has no table `{table}`; it has {', '.join(tables) or 'none'}")
        rows = [row for entry in tables[table] for row in _rows(entry)]
        filled = {column for row in rows for column, value in row.items() if value is not None}
        # `time` without a value in one row is `time.value` of the others.
        nested = {column.rsplit(".", depth)[0] for column in filled for depth in range(1, 1 + column.count("."))}
        return [{c: value for c, value in row.items() if c in filled or c not in nested} for row in rows]

    def to_pandas(self, table: str) -> pandas.DataFrame:
        """`to_rows` as a data frame of pandas, which has to be installed."""
        import pandas

        return pandas.DataFrame(self.to_rows(table))

    def _repr_html_(self) -> str:
        """The report of `iowhy report`, in a frame that can neither reach the notebook nor the network."""
        made = subprocess.run([binary(), "report", "-"], input=self._json, capture_output=True, check=False)
        page, complaint = (text.decode(errors="replace") for text in (made.stdout, made.stderr))
        if made.returncode != 0:
            return f"<pre>{html.escape(complaint)}</pre>"
        style = "width: 100%; height: 40em; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'


#: An entry with more figures of its own than this is a row itself, whatever lists it holds.
MAX_OUTER = 3


def _rows(entry: Object) -> list[dict[str, Any]]:
    """A row, or one for each element of the only list of objects in it. Other lists are left out."""
    row = _flat(entry)
    inner = [
        (key, item)
        for key, item in vars(entry).items()
        if key != "samples" and isinstance(item, list) and item and isinstance(item[0], Object)
    ]
    if len(inner) != 1 or len(row) > MAX_OUTER:
        return [row]
    [(key, items)] = inner
    return [row | _flat(item, f"{key}.") for item in items]


def _flat(value: Object | dict[str, Any], prefix: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, item in (value if isinstance(value, dict) else vars(value)).items():
        if isinstance(item, (Object, dict)):
            row |= _flat(item, f"{prefix}{key}.")
        elif not isinstance(item, list):
            row[prefix + key] = item
    return row
