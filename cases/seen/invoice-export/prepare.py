import os, random, sys

LINES = 260000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(55)
with open(os.path.join(d, "items.csv"), "w") as f:
    invoice = 5000
    for i in range(LINES):
        if r.random() < 0.2:
            invoice += 1
        f.write("%d;ART%05d;%d;%d\n" % (invoice, r.randrange(30000), r.randrange(1, 12), r.randrange(50, 90000)))
