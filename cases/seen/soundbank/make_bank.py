#!/usr/bin/python3
"""Makes a sample bank (clips.bnk), its index and a score that uses some of the clips."""
import random, struct, sys

out = sys.argv[1]
clips, used = int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(20240611)
pos = 0
index = []
with open(out + "/clips.bnk", "wb", buffering=1 << 20) as bank:
    for _ in range(clips):
        n = rng.randrange(4096, 12288, 2)
        bank.write(rng.randbytes(n))
        index.append((pos, n))
        pos += n
with open(out + "/clips.idx", "wb") as f:
    for e in index:
        f.write(struct.pack("<QI", *e))
order = rng.sample(range(clips), used)
with open(out + "/score.txt", "w") as f:
    for c in order:
        f.write("%d %d\n" % (c, rng.randrange(20, 120)))
