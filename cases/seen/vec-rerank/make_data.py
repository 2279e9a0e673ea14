#!/usr/bin/env python3
"""Makes a table of int8 vectors and the candidate lists of an approximate search."""
import os
import random
import struct
import sys

ROWS, DIM = 360_000, 1024
QUERIES, CANDIDATES = 100, 100

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(20240611)

with open(os.path.join(out, "vectors.i8"), "wb") as f:
    f.write(struct.pack("<4sIIQ", b"VEC8", 1, DIM, ROWS).ljust(4096, b"\0"))
    left = ROWS
    while left:
        n = min(left, 4096)
        f.write(rng.randbytes(n * DIM))
        left -= n
    f.flush()
    os.fsync(f.fileno())

with open(os.path.join(out, "candidates.bin"), "wb") as f:
    f.write(struct.pack("<II", QUERIES, CANDIDATES))
    for _ in range(QUERIES):
        f.write(rng.randbytes(DIM))
        ids = [rng.randrange(ROWS) for _ in range(CANDIDATES)]
        f.write(struct.pack("<%dI" % CANDIDATES, *ids))
    f.flush()
    os.fsync(f.fileno())
