"""Changes records of a cold file in random order, then syncs: `part` writes 1000 bytes of each block of 4096, so that the
rest must be read first, `whole` writes the block."""
import os
import random
import sys

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
fd = os.open(path, os.O_WRONLY)
order = random.Random(7).sample(range(os.fstat(fd).st_size // 4096), count)
record = b"p" * (1000 if how == "part" else 4096)
for block in order:
    os.pwrite(fd, record, block * 4096)
os.fdatasync(fd)
print(count)
