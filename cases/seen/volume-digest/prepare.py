"""A backup volume of 390 MB."""
import os, random, sys

d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(126)
with open(os.path.join(d, "volume.bak"), "wb") as f:
    for _ in range(372):
        f.write(r.randbytes(1 << 20))
    f.flush()
    os.fsync(f.fileno())
