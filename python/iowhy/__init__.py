"""Where the time goes between a program's read or write and the disk, what limits it, and what would help.

`load` reads a record, `watch` profiles a block of code, `binary` is the program that both stand for.
"""

from ._binary import Error, binary
from ._load import load
from ._watch import watch
from .records import VERSION as __version__

__all__ = ["Error", "__version__", "binary", "load", "watch"]
