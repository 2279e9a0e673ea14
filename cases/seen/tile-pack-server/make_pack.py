#!/usr/bin/env python3
"""Build a tile pack (tiles.pack + tiles.idx) and a request trace for tiled."""
import random
import struct
import sys

out = sys.argv[1]
rng = random.Random(20240611)
tiles = 32000

offset = 0
with open(out + "/tiles.pack", "wb") as pack, open(out + "/tiles.idx", "wb") as idx:
    for tile in range(tiles):
        size = rng.randrange(2500, 13000)
        pack.write(rng.randbytes(size))
        idx.write(struct.pack("<QII", offset, size, tile))
        offset += size

with open(out + "/requests.txt", "w") as trace:
    for tile in rng.sample(range(tiles), 12000):
        trace.write(f"{tile}\n")
