"""Finds the program `iowhy`: the one that the package carries, or else the first in PATH."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


class Error(Exception):
    """Cause, consequence, and the next command."""


def binary() -> str:
    """Path of the program `iowhy`.

    Raises `Error` where there is none.
    """
    carried = str(Path(__file__).parent / "bin" / "iowhy")
    if os.access(carried, os.X_OK):
        return carried
    for folder in os.get_exec_path():
        found = shutil.which("iowhy", path=folder)
        if found and _is_program(found):
            return found
    raise Error(
        f"there is no program `iowhy`: `{carried}` cannot be executed, and PATH has none. "
        "Install the wheel for this machine's architecture, or the Debian or RPM package; they come from `cargo xtask dist`"
    )


def _is_program(path: str) -> bool:
    """Whether it is a program and not this package's own script, which would start itself for ever."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
