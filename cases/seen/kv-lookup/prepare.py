"""A value log of 1 KiB values, its index, and a list of keys to fetch."""
import os, random, struct, sys

VALUES = 240 * 1024      # 240 MiB
GETS = 16000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(33)
with open(os.path.join(d, "values.log"), "wb") as f:
    for _ in range(VALUES // 1024):
        f.write(r.randbytes(1 << 20))
    f.flush()
    os.fsync(f.fileno())
slots = list(range(VALUES))
r.shuffle(slots)
with open(os.path.join(d, "index.bin"), "wb") as f:      # key -> offset
    f.write(struct.pack("<%dQ" % VALUES, *(s * 1024 for s in slots)))
with open(os.path.join(d, "keys.txt"), "w") as f:
    for _ in range(GETS):
        f.write("%d\n" % r.randrange(VALUES))
os.sync()
