"""Reads 40 bytes at random places of a cached file: `seek` through a buffered file of 128 KiB, `pread` by position."""
import os
import random
import sys

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
draw = random.Random(7)
total = 0
with open(path, "rb", buffering=128 << 10) as file:
    size = os.fstat(file.fileno()).st_size - 40
    for _ in range(count):
        place = draw.randrange(size)
        if how == "seek":
            file.seek(place)
            total += file.read(40)[0]
        else:
            total += os.pread(file.fileno(), 40, place)[0]
print(total)
