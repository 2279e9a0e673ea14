"""Scanned documents: a folder each, with the recognised text of each page."""
import os, random, sys

DOCS, PAGES = 240, 15
d = sys.argv[1]
r = random.Random(212)
vocabulary = ["%s%s" % (a, b) for a in "ba ce di fo gu ha je ki lo mu".split() for b in "nter rix lan dor mus ste".split()]
for i in range(DOCS):
    folder = os.path.join(d, "docs", "doc%04d" % i)
    os.makedirs(folder, exist_ok=True)
    for p in range(PAGES):
        with open(os.path.join(folder, "page%d.txt" % p), "w") as f:
            f.write(" ".join(r.choices(vocabulary, k=250)) + "\n")
os.sync()
