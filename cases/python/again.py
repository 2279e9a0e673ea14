"""Reads a file several times: `drop` lets the kernel forget it after each time, `keep` does not."""
import os
import sys

path, rounds, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
total = 0
buffer = bytearray(1 << 20)
for _ in range(rounds):
    with open(path, "rb", buffering=0) as file:
        while got := file.readinto(buffer):
            total += got
        if how == "drop":
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
print(total)
