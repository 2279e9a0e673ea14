"""A feed of changes, one a line."""
import os, random, sys

COUNT = 5000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(108)
with open(os.path.join(d, "feed.txt"), "w") as f:
    for i in range(COUNT):
        f.write("%d %s /items/%d %032x\n" % (i, r.choice(["put", "del"]), r.randrange(50000), r.getrandbits(128)))
