"""Write a backup archive (tar) of a project tree: many small files in some folders."""
import io
import os
import random
import sys
import tarfile

out, count = sys.argv[1], int(sys.argv[2])
os.makedirs(os.path.dirname(out), exist_ok=True)
rng = random.Random(5)
with tarfile.open(out, "w") as tar:
    for i in range(count):
        info = tarfile.TarInfo(f"project/mod{i % 24:02}/part{i:05}.dat")
        data = rng.randbytes(rng.randint(300, 24000))
        info.size = len(data)
        info.mtime = 1700000000 + i
        info.mode = 0o644
        tar.addfile(info, io.BytesIO(data))
