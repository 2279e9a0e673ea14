"""Reads random blocks of 16 KiB of a cold file: `single` one after the other, `pool` with sixteen threads."""
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
BLOCK = 16384
fd = os.open(path, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
order = random.Random(7).sample(range(os.fstat(fd).st_size // BLOCK), count)


def read(number):
    return os.pread(fd, BLOCK, number * BLOCK)[0]


def read_all(numbers):
    return sum(read(number) for number in numbers)


if how == "single":
    print(read_all(order))
else:
    with ThreadPoolExecutor(16) as pool:
        print(sum(pool.map(read_all, [order[i::16] for i in range(16)])))
