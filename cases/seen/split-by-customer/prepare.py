import os, random, sys

LINES, CUSTOMERS = 110000, 200
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(201)
with open(os.path.join(d, "usage.csv"), "w") as f:
    for i in range(LINES):
        f.write("%d,cust%03d,%d,%d\n" % (1700000000 + i, r.randrange(CUSTOMERS), r.randrange(1, 5000), r.randrange(100)))
