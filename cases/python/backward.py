"""Reads a cold file in pieces of 16 KiB: `back` from the end to the front, where the kernel never reads ahead, or
`front` to end."""
import os
import sys

path, how = sys.argv[1:]
PIECE = 1 << 14
fd = os.open(path, os.O_RDONLY)
places = range(0, os.fstat(fd).st_size, PIECE)
total = 0
for place in places if how == "front" else reversed(places):
    total += os.pread(fd, PIECE, place)[0]
print(total)
