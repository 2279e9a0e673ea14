#!/usr/bin/env python3
"""Writes transfers in batches: number of transfers (4 bytes), then from, to, cents (12 bytes each)."""
import random, struct, sys
path, batches = sys.argv[1], int(sys.argv[2])
rnd = random.Random(5)
with open(path, "wb") as f:
    for i in range(batches):
        n = rnd.randrange(20, 80)
        f.write(struct.pack("<I", n))
        for _ in range(n):
            f.write(struct.pack("<III", rnd.randrange(5000), rnd.randrange(5000), rnd.randrange(1, 90000)))
