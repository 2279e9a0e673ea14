import random, struct, sys
from array import array
rnd = random.Random(3)
base = array("f", (270 + rnd.random() * 30 for _ in range(4096 * 4)))
blob = base.tobytes()
with open(sys.argv[1] + "/t2m.grid", "wb") as f:
    for t in range(18000):
        o = 4 * rnd.randrange(4096 * 3)
        f.write(blob[o:o + 16384])
