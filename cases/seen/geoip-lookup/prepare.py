import os, random, struct, sys

RANGES, QUERIES = 500000, 1400
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(123)
step = (1 << 32) // RANGES
with open(os.path.join(d, "ranges.bin"), "wb") as f:
    for i in range(RANGES):
        f.write(struct.pack("<III", i * step, (i + 1) * step - 1, r.randrange(240)))
with open(os.path.join(d, "hits.txt"), "w") as f:
    for _ in range(QUERIES):
        f.write("%d\n" % r.randrange(RANGES * step))
