"""`python -m iowhy ARGS` and the script `iowhy`: become the program."""

import os
import signal
import sys

from ._binary import Error, binary


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    try:
        path = binary()
    except Error as error:
        sys.exit(f"error: {error}")
    # Python ignores these, and what is ignored stays so over exec: a program that iowhy runs would inherit it.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(path, ["iowhy", *sys.argv[1:]])


if __name__ == "__main__":
    main()
