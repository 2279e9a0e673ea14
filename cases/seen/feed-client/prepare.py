"""The prices that the server hands out."""
import os, random, sys

d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(125)
with open(os.path.join(d, "prices.txt"), "w") as f:
    for i in range(8000):
        f.write("ITEM%05d %9.2f EUR\n" % (i, r.uniform(1, 9999)))
