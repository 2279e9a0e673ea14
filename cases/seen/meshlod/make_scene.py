#!/usr/bin/env python3
"""Writes a scene file: header, table of submeshes, then interleaved vertices."""
import array, random, struct, sys

path = sys.argv[1]
submeshes = int(sys.argv[2]) if len(sys.argv) > 2 else 400
rnd = random.Random(71)
STRIDE = 64                     # pos 12, normal 12, tangent 16, uv 8, joints 4, weights 12

counts = [rnd.randrange(1400, 2600) for _ in range(submeshes)]
table = 16 + submeshes * 16
with open(path, "wb") as f:
    f.write(struct.pack("<4sIII", b"SCN1", submeshes, STRIDE, 0))
    at = table
    for n in counts:
        f.write(struct.pack("<QII", at, n, 0))
        at += n * STRIDE
    for n in counts:
        cx, cy, cz = (rnd.uniform(-500, 500) for _ in range(3))
        rest = rnd.randbytes(STRIDE - 12)
        block = bytearray()
        for _ in range(n):
            block += struct.pack("<fff", cx + rnd.random() * 4, cy + rnd.random() * 4, cz + rnd.random() * 4)
            block += rest
        f.write(block)
