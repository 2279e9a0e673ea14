"""The jobs that a client hands in."""
import os, random, sys

COUNT = 3500
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(113)
with open(os.path.join(d, "jobs.txt"), "w") as f:
    for _ in range(COUNT):
        f.write("resize image-%d.png %dx%d\n" % (r.randrange(10**6), r.randrange(10, 2000), r.randrange(10, 2000)))
