"""A project share and yesterday's snapshot of it; 25 files have changed since."""
import os, random, sys
d = sys.argv[1]
r = random.Random(5)
changed = set(r.sample(range(2200), 25))
T = 1_700_000_000
for i in range(2200):
    sub = f"team{i % 12:02d}/proj{i % 60:02d}"
    name = f"{sub}/part{i:04d}.dat"
    data = r.randbytes(int(min(r.lognormvariate(11, 0.8), 900_000)))
    for top, b, t in (("daily.1", data, T + i), ("share", data, T + i)):
        if top == "share" and i in changed:
            b, t = b + b"edited\n" * (1 + i % 5), T + 86400 + i
        p = f"{d}/{top}/{name}"
        os.makedirs(os.path.dirname(p), exist_ok=True)
        with open(p, "wb") as f:
            f.write(b)
        os.utime(p, (t, t))
for top in ("daily.1", "share"):
    for root, dirs, _ in os.walk(f"{d}/{top}"):
        os.utime(root, (T, T))
