"""A loader as machine learning has it, in Python alone: worker processes read samples, one small file each, and send batches."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.queues import SimpleQueue

SAMPLE_BYTES = 512
BATCH = 32


class Folder:
    """A data set: a file for each sample."""

    def __init__(self, path: str, count: int) -> None:
        self.paths = [os.path.join(path, f"{number:06}.bin") for number in range(count)]
        for name in self.paths:
            with open(name, "wb") as file:
                file.write(b"x" * SAMPLE_BYTES)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> bytes:
        with open(self.paths[index], "rb") as file:
            return file.read()


def batches(data: Folder, workers: int) -> Iterator[list[bytes]]:
    """All samples, in batches as workers have them ready."""
    context = multiprocessing.get_context("fork")
    wanted: SimpleQueue[list[int] | None] = context.SimpleQueue()
    ready: SimpleQueue[list[bytes]] = context.SimpleQueue()

    def work() -> None:
        while (indices := wanted.get()) is not None:
            ready.put([data[index] for index in indices])

    started = [context.Process(target=work) for _ in range(workers)]
    for process in started:
        process.start()
    starts = range(0, len(data), BATCH)
    for start in starts:
        wanted.put(list(range(start, min(start + BATCH, len(data)))))
        yield ready.get()
    for process in started:
        wanted.put(None)
    for process in started:
        process.join()
