"""512 x 24576 floats in chunks of 256 x 1024."""
import array, os, random, sys

d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(117)
base = array.array("f", (r.random() for _ in range(256 * 1024)))
with open(os.path.join(d, "dataset.chunks"), "wb") as f:
    for i in range(2 * 24):
        k = r.randrange(len(base))
        f.write((base[k:] + base[:k]).tobytes())
