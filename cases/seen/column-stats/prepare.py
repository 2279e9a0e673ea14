"""A CSV file of five columns of whole numbers."""
import os, random, sys

ROWS = 500_000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(115)
with open(os.path.join(d, "measure.csv"), "w") as f:
    f.write("a,b,c,d,e\n")
    for i in range(ROWS):
        f.write("%d,%d,%d,%d,%d\n" % (i, r.randrange(1000), r.randrange(100000), r.randrange(10**6), r.randrange(100)))
