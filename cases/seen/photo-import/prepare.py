"""A camera card with pictures."""
import os, random, sys

COUNT = 250
d = sys.argv[1]
os.makedirs(os.path.join(d, "card"), exist_ok=True)
r = random.Random(122)
for i in range(COUNT):
    name = "2024%02d%02d-IMG%04d.jpg" % (1 + i // 40, 1 + i % 28, i)
    with open(os.path.join(d, "card", name), "wb") as f:
        f.write(r.randbytes(r.randrange(40_000, 200_000)))
os.sync()
