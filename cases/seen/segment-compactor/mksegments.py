#!/usr/bin/env python3
"""Make the sorted segments of two shards: DIR/shard-S/NNN.seg, a higher number is newer."""
import os
import random
import struct
import sys

out = sys.argv[1]
rng = random.Random(4711)
for shard in range(2):
    where = f"{out}/shard-{shard}"
    os.makedirs(where, exist_ok=True)
    for seg in range(3):
        keys = sorted(rng.sample(range(200_000), 40_000))
        with open(f"{where}/{seg:03}.seg", "wb") as f:
            for k in keys:
                key = b"user:%08d" % k
                value = rng.randbytes(rng.randrange(150, 650))
                f.write(struct.pack("<HI", len(key), len(value)) + key + value)
