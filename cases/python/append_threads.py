"""Eight threads append blocks past the cache: all to one file (`shared`), or each over the blocks of its own (`own`)."""
import mmap
import os
import sys
import threading

folder, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
THREADS = 8
BLOCK = 4096


def start(name, blocks):
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
    if blocks:
        space = mmap.mmap(-1, blocks * BLOCK)
        os.pwrite(fd, space, 0)
    return fd


def work(fd, first, step):
    block = mmap.mmap(-1, BLOCK)
    block.write(b"b" * BLOCK)
    for number in range(count):
        os.pwrite(fd, block, (first + number * step) * BLOCK)


if how == "shared":
    fd = start("shared", 0)
    threads = [threading.Thread(target=work, args=(fd, i, THREADS)) for i in range(THREADS)]
else:
    threads = [threading.Thread(target=work, args=(start(f"own{i}", count), 0, 1)) for i in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(count * THREADS)
