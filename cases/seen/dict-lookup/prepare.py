"""A sorted dictionary of fixed-size entries, and a text to look up in it."""
import os, random, sys

ENTRIES, QUERIES = 1000000, 20000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(189)
with open(os.path.join(d, "dict.dat"), "wb") as f:
    for i in range(ENTRIES):
        f.write(b"w%011d gloss%08d\n " % (i * 7, r.randrange(10 ** 8)))
with open(os.path.join(d, "words.txt"), "w") as f:
    for _ in range(QUERIES):
        f.write("w%011d\n" % r.randrange(ENTRIES * 7))
