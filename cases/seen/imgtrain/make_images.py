"""Pack raw 256x256 RGB images, one after the other, into one file."""
import os
import sys

out, count = sys.argv[1], int(sys.argv[2])
os.makedirs(os.path.dirname(out), exist_ok=True)
with open(out, "wb") as f:
    for i in range(count):
        f.write(os.urandom(256 * 256 * 3))
    f.flush()
    os.fsync(f.fileno())
