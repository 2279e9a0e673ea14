"""A file of 360 grids of 400 x 400 floats, and a list of stations."""
import array, os, random, sys

STEPS, CELLS, STATIONS = 360, 400 * 400, 80
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(103)
base = array.array("f", (r.uniform(-20, 30) for _ in range(CELLS)))
with open(os.path.join(d, "climate.grid"), "wb") as f:
    for t in range(STEPS):
        k = (t * 7919) % CELLS
        f.write((base[k:] + base[:k]).tobytes())
    f.flush()
    os.fsync(f.fileno())
with open(os.path.join(d, "stations.txt"), "w") as f:
    for i, cell in enumerate(r.sample(range(CELLS), STATIONS)):
        f.write("ST%03d %d\n" % (i, cell))
