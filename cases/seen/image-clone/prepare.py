"""A sparse disk image: a little data here and there."""
import os, random, sys

SIZE, PIECES, PIECE = 360 << 20, 96, 256 << 10
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(107)
with open(os.path.join(d, "disk.img"), "wb") as f:
    for slot in sorted(r.sample(range(SIZE // PIECE), PIECES)):
        f.seek(slot * PIECE)
        f.write(r.randbytes(PIECE))
    f.truncate(SIZE)
    f.flush()
    os.fsync(f.fileno())
