"""Profiles the running interpreter for a block. Invariant: nothing here changes what the block does or raises."""

from __future__ import annotations

import html
import os
import select
import shutil
import signal
import subprocess
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from . import records
from ._binary import Error, binary
from ._load import load

#: Seconds until a profile must have begun. It takes a tenth of one; more means that the machine has stalled.
MAX_START_S = 30
#: What sudo and its like leave for their programs. It would make iowhy write as the user who called it, into a directory of ours.
CALLER_VARIABLES = ("SUDO_UID", "SUDO_GID", "PKEXEC_UID", "DOAS_USER")
#: Options of `iowhy attach` that a block cannot have, and why.
REFUSED = {
    "--time": "the end of the block ends the profile",
    "-q": "the line that says that the profile has begun is waited for",
    "--quiet": "the line that says that the profile has begun is waited for",
    "--json": "the record is taken by `watch` itself; `save(FILE)` writes it",
    "--output": "the report is taken by `watch` itself; `str()` is its text",
}


class watch:
    """`with iowhy.watch() as w:` runs `iowhy attach` on this interpreter for the block.

    Seen are the threads of this process and the processes below it. After the block `w.record` is the
    record, `w.findings` its findings; `print(w)` prints the report, and a notebook shows it as a page.

    Where nothing may be profiled the block runs all the same, and `w.problem` says why.
    `options` are further ones of `iowhy attach`, such as `"--no-calibrate"`. Raises `ValueError` for those
    that a block cannot have.
    """

    problem: str | None = None
    """Why there is no record: cause and next command."""

    def __init__(self, *options: str) -> None:
        for option in map(str, options):
            name = "-q" if option.startswith("-q") else option.split("=")[0]
            if name in REFUSED:
                raise ValueError(f"`{name}` is no option of a block: {REFUSED[name]}")
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._record: records.WatchedProgramResult | None = None
        self._screen = ""

    def __enter__(self) -> watch:
        self._pid = os.getpid()
        try:
            self._begin()
        except Error as error:
            self.problem = str(error)
        except OSError as error:
            self._kill()
            self.problem = f"iowhy could not be started: {error}"
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A process that the block forked comes here, too, and the profile is not its own.
        if self._process is None or os.getpid() != self._pid:
            return
        try:
            self._end(self._process, signal.SIGINT)
        except (OSError, Error) as failure:
            self.problem = f"the profile is lost: {failure}"
        finally:
            self._kill()

    def _begin(self) -> None:
        command = [binary(), "--color", "never", "attach", *self._options, str(self._pid)]
        self._folder = tempfile.mkdtemp(prefix="iowhy-")
        self._remove = weakref.finalize(self, _remove, self._folder, self._pid)
        # In a parallel job, iowhy refuses a file whose name has no placeholder.
        output = ["--json", self._folder.replace("{", "{{") + "/run-{host}.json"]
        try:
            self._process = subprocess.Popen(
                [*command, *output],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name not in CALLER_VARIABLES},
                # Ctrl-C is for the block.
                start_new_session=True,
            )
        except OSError:
            self._remove()
            raise
        begun, said = _until_begun(self._process.stderr)
        if not begun:
            self._end(self._process, signal.SIGKILL, said)

    def _end(self, process: subprocess.Popen[bytes], by: signal.Signals, said: bytes = b"") -> None:
        process.send_signal(by)
        screen, messages = process.communicate()
        self._process = None
        try:
            written = list(Path(self._folder).iterdir())
            if by == signal.SIGINT and written:
                self._record = cast(records.WatchedProgramResult, load(written[0]))
                self._screen = screen.decode(errors="replace")
            else:
                words = (said + messages).decode(errors="replace").strip()
                self.problem = words or f"iowhy ended with {process.returncode} and said nothing"
        finally:
            self._remove()

    def _kill(self) -> None:
        """Ends what an exception left."""
        process = self._process
        if process is None or os.getpid() != self._pid:
            return
        self._process = None
        with suppress(OSError):
            process.kill()
            process.communicate()
        self._remove()

    @property
    def record(self) -> records.WatchedProgramResult:
        """The record. Raises `Error` where there is none."""
        if self._record is None:
            raise Error(self.problem or "there is no record before the block ends")
        return self._record

    @property
    def findings(self) -> list[records.Finding]:
        """Causes, most valuable first. Raises `Error` where there is no record."""
        return self.record.findings

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record, for `iowhy compare`, `report`, `prove` and `load`."""
        Path(path).write_bytes(self.record._json)

    def __str__(self) -> str:
        if self._record is None:
            return self.problem or "no report before the block ends"
        return self._screen

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self._record is None:
            return f"<pre>{html.escape(str(self))}</pre>"
        return self._record._repr_html_()


def _remove(folder: str, maker: int) -> None:
    """Removes the folder, unless this is a process that its maker forked."""
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)


def _until_begun(stream: IO[bytes] | None) -> tuple[bool, bytes]:
    """Whether the program says that the profile has begun, and what it said."""
    said = b""
    # `select.select` knows no descriptor from 1024 on.
    poll = select.poll()
    if stream is not None:
        poll.register(stream, select.POLLIN)
    while stream is not None and poll.poll(MAX_START_S * 1000):
        more = os.read(stream.fileno(), 4096)
        said += more
        if any(line.startswith(b"watching") and line.endswith(b"\n") for line in said.splitlines(keepends=True)):
            return True, said
        if not more:
            break
    return False, said
