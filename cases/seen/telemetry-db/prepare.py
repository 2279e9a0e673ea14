"""Telemetry packets: vehicle, time, and readings."""
import os, random, sys

COUNT = 1000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(111)
with open(os.path.join(d, "packets.csv"), "w") as f:
    for i in range(COUNT):
        f.write("%d,%d,%s\n" % (r.randrange(80), 1700000000 + i, " ".join(str(r.randrange(4096)) for _ in range(40))))
