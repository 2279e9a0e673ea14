"""Looks at entries of a cold file through a mapping: `plain`, where each look brings in the neighbourhood, or `random`,
where the kernel is told not to."""
import mmap
import random
import sys

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(path, "rb") as file:
    view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    if how == "random":
        view.madvise(mmap.MADV_RANDOM)
    draw = random.Random(7)
    print(sum(view[draw.randrange(len(view))] for _ in range(count)))
