"""What the other peers have."""
import os, random, sys

d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(120)
with open(os.path.join(d, "swarm.bin"), "wb") as f:
    for _ in range(190):
        f.write(r.randbytes(1 << 20))
    f.flush()
    os.fsync(f.fileno())
