"""The files of a parts catalogue: a table of 64 sections, and the sections between geometry."""
import os, random, struct, sys

PARTS, SECTIONS, SLOT = 300, 64, 12288
d = sys.argv[1]
os.makedirs(os.path.join(d, "parts"), exist_ok=True)
r = random.Random(119)
for i in range(PARTS):
    body = r.randbytes(SECTIONS * SLOT)
    places = [(4096 + k * SLOT + r.randrange(8000), r.randrange(300, 3000)) for k in range(SECTIONS)]
    r.shuffle(places)
    table = b"".join(struct.pack("<QQ", *p) for p in places)
    with open(os.path.join(d, "parts", "part-%04d.step" % i), "wb") as f:
        f.write(table.ljust(4096, b"\0") + body)
        f.flush()
        os.fsync(f.fileno())
