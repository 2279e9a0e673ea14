"""Makes two thin-provisioned raw disk images, as `qemu-img create -f raw` and a guest's installation leave them."""
import os
import random
import sys

GIB = 1 << 30
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(20240611)
shared = [rng.randbytes(256 * 1024) for _ in range(12)]   # blocks both guests have: same distribution

for name, size, extents in (("web01.raw", int(0.625 * GIB), 100), ("db01.raw", int(0.875 * GIB), 130)):
    path = os.path.join(out, name)
    with open(path, "wb") as f:
        f.truncate(size)
        f.write(rng.randbytes(64 * 1024))                 # boot sector, partition table, GRUB
        for i in range(extents):
            at = rng.randrange(1, size // 4096 - 200) * 4096
            f.seek(at)
            if i % 4 == 0:
                f.seek(at // (256 * 1024) * (256 * 1024))
                f.write(rng.choice(shared))
            else:
                f.write(rng.randbytes(rng.randrange(16, 160) * 4096))
        f.seek(size - 4096)
        f.write(rng.randbytes(4096))                      # backup GPT
