"""Makes an object store as a backup tool keeps it: objects.pack, written in the order in which the
objects came, and objects.idx, sorted by the objects' ids for binary search."""
import os
import random
import struct
import sys
import zlib

COUNT = 50000
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rnd = random.Random(29)
index, at = [], 0
with open(f"{out}/objects.pack", "wb") as pack:
    for n in range(COUNT):
        data = rnd.randbytes(rnd.randrange(200, 3500))
        index.append(rnd.randbytes(20) + struct.pack("<QII", at, len(data), zlib.crc32(data)))
        if n % 15000 == 1234:
            data = data[:-1] + bytes([data[-1] ^ 1])  # bit rot
        pack.write(data)
        at += len(data)
with open(f"{out}/objects.idx", "wb") as idx:
    idx.write(b"".join(sorted(index)))
