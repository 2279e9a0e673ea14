#!/usr/bin/python3
"""Makes three thin-provisioned virtual disk images: large, mostly holes."""
import os, random, sys
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
rnd = random.Random(4711)
SIZE = 3000 << 20
for name in ("dc01", "files02", "erp03"):
    with open(os.path.join(d, name + ".img"), "wb") as f:
        f.truncate(SIZE)
        spots = sorted(rnd.sample(range(SIZE // (2 << 20)), 40))
        for s in spots:
            f.seek(s * (2 << 20) + 4096 * rnd.randrange(0, 64))
            f.write(rnd.randbytes(1 << 20))
        f.flush()
        os.fsync(f.fileno())
