"""Four processes look up sections of one cold file below a lock: file_lock.py flock|fcntl alone|together FILE."""
import fcntl
import os
import sys
import zlib

PROCESSES = 4
SECTIONS = 3000
BYTES = 4096

kind, how, path = sys.argv[1:]
blocks = os.path.getsize(path) // BYTES


def locked(file, block):
    if kind == "flock":
        fcntl.flock(file, fcntl.LOCK_EX if how == "alone" else fcntl.LOCK_SH)
    elif how == "alone":
        fcntl.lockf(file, fcntl.LOCK_EX)
    else:
        fcntl.lockf(file, fcntl.LOCK_EX, BYTES, block * BYTES)


def released(file):
    if kind == "flock":
        fcntl.flock(file, fcntl.LOCK_UN)
    else:
        fcntl.lockf(file, fcntl.LOCK_UN)


def look_up(number):
    total = 0
    # Each opens the file for itself: a lock of flock belongs to what was opened.
    with open(path, "r+b", buffering=0) as file:
        for n in range(SECTIONS):
            block = (n * 7919 * PROCESSES + number * 104729) % blocks
            locked(file, block)
            total = zlib.crc32(os.pread(file.fileno(), BYTES, block * BYTES), total)
            released(file)
    return total


children = []
for number in range(PROCESSES):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, b"%08x" % look_up(number))
        os._exit(0)
    os.close(write)
    children.append((pid, read))
for pid, read in children:
    print(os.read(read, 8).decode())
    os.waitpid(pid, 0)
