"""Looks at one byte of every page of a cached file, several times: `read` copies all of it each time, `map` does not."""
import mmap
import sys

path, rounds, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PIECE = 1 << 20
total = 0
if how == "read":
    buffer = bytearray(PIECE)
    for _ in range(rounds):
        with open(path, "rb", buffering=0) as file:
            while got := file.readinto(buffer):
                total += sum(buffer[:got:4096])
else:
    with open(path, "rb") as file:
        view = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE, prot=mmap.PROT_READ)
        for _ in range(rounds):
            total += sum(view[::4096])
print(total)
