"""Sorted runs of 128-byte records with an 8-byte key in front."""
import os, random, struct, sys

RUNS, RECORDS = 24, 32768      # 4 MiB a run
d = sys.argv[1]
os.makedirs(os.path.join(d, "runs"), exist_ok=True)
r = random.Random(106)
for i in range(RUNS):
    keys = sorted(r.getrandbits(22) for _ in range(RECORDS))
    fill = r.randbytes(120)
    with open(os.path.join(d, "runs", "%02d.run" % i), "wb") as f:
        f.write(b"".join(struct.pack("<Q", k) + fill for k in keys))
        f.flush()
        os.fsync(f.fileno())
