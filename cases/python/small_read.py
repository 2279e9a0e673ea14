"""Reads a cached file: `small` with a call for every 100 bytes, `large` with a call for every MiB."""
import os
import sys

path, how = sys.argv[1:]
size = 100 if how == "small" else 1 << 20
fd = os.open(path, os.O_RDONLY)
total = 0
while piece := os.read(fd, size):
    total += len(piece)
print(total)
