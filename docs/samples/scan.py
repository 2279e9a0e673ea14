"""Reads a file twenty times into one buffer: memory from malloc (malloc), or memory that begins at a page (page)."""

import mmap
import sys

SIZE = 1 << 20
buffer = bytearray(SIZE) if sys.argv[2] == "malloc" else mmap.mmap(-1, SIZE)
with open(sys.argv[1], "rb", buffering=0) as file:
    for _ in range(20):
        file.seek(0)
        while file.readinto(buffer):
            pass
