"""A released tree and a server's copy of it, in which some files differ."""
import os, random, sys

FILES, BYTES = 600, 250_000
d = sys.argv[1]
r = random.Random(124)
changed = set(r.sample(range(FILES), 12))
for side in ("release", "server"):
    for k in range(20):
        os.makedirs(os.path.join(d, side, "mod%02d" % k), exist_ok=True)
for i in range(FILES):
    body = r.randbytes(BYTES)
    for side in ("release", "server"):
        path = os.path.join(d, side, "mod%02d" % (i % 20), "lib%03d.so" % i)
        when = 1_700_000_000 + i
        with open(path, "wb") as f:
            if side == "server" and i in changed:
                f.write(body[:-7])
                when += 5000
            else:
                f.write(body)
            f.flush()
            os.fsync(f.fileno())
        os.utime(path, (when, when))
for side in ("release", "server"):
    for k in range(20):
        os.utime(os.path.join(d, side, "mod%02d" % k), (1_700_000_000, 1_700_000_000))
    os.utime(os.path.join(d, side), (1_700_000_000, 1_700_000_000))
