#!/usr/bin/env python3
"""Writes a camera card: photos of 0.3 to 3 MB in folders per day; some are there twice."""
import os, random, sys
top, total = sys.argv[1], int(sys.argv[2]) * 1000000
rnd = random.Random(77)
pool, i = [], 0
while total > 0:
    data = rnd.choice(pool) if pool and rnd.random() < 0.15 else rnd.randbytes(rnd.randrange(300_000, 3_000_000))
    if len(pool) < 12:
        pool.append(data)
    day = "%s/2024-07-%02d" % (top, 1 + i // 12)
    os.makedirs(day, exist_ok=True)
    with open("%s/IMG_%04d.JPG" % (day, i), "wb") as f:
        f.write(data)
    total -= len(data)
    i += 1
