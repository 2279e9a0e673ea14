"""A pyramid of 4 KiB map tiles in one file, and a log of tile requests."""
import os, random, struct, sys

TILES = 64 * 1024        # 256 MiB
REQUESTS = 14000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(88)
with open(os.path.join(d, "tiles.bin"), "wb") as f:
    for _ in range(TILES // 256):
        f.write(r.randbytes(1 << 20))
    f.flush()
    os.fsync(f.fileno())
with open(os.path.join(d, "requests.bin"), "wb") as f:
    f.write(struct.pack("<%dI" % REQUESTS, *r.sample(range(TILES), REQUESTS)))
os.sync()
