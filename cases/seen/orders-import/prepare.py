import os, random, sys

ROWS = 120
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(22)
with open(os.path.join(d, "orders.csv"), "w") as f:
    f.write("id,customer,sku,quantity,cents\n")
    for i in range(ROWS):
        f.write("%d,C%05d,SKU-%06d,%d,%d\n" % (
            100000 + i, r.randrange(4000), r.randrange(200000), r.randrange(1, 9), r.randrange(99, 50000)))
