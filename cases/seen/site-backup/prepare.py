import os, random, sys

FILES, SIZE = 280, 500000
d = sys.argv[1]
r = random.Random(134)
for s in range(10):
    os.makedirs(os.path.join(d, "site", "section%d" % s), exist_ok=True)
for i in range(FILES):
    with open(os.path.join(d, "site", "section%d" % (i % 10), "page%03d.bin" % i), "wb") as f:
        f.write(r.randbytes(SIZE))
os.sync()
