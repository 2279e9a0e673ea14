"""Looks at every page of parts of a cached file: `each` maps the file for each look at a part, `once` keeps one mapping."""
import mmap
import sys

path, rounds, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
total = 0
with open(path, "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    for _ in range(rounds):
        view = kept if how == "once" else mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        total += sum(view[::4096])
        if how == "each":
            view.close()
print(total)
