"""Digests the descriptive sections of the files of a parts catalogue with eight worker processes."""
import fcntl
import hashlib
import os
import struct
import sys
import zlib

WORKERS = 8
HEAD = struct.Struct("<QQ")    # offset and length of a section


def sections(path):
    """The sections of a part, in the order of its table; the geometry between them is skipped."""
    fd = os.open(path, os.O_RDONLY)
    table = os.pread(fd, 64 * HEAD.size, 0)
    for offset, length in HEAD.iter_unpack(table):
        yield os.pread(fd, length, offset)
    os.close(fd)


def work(mode, folder, names, pipe):
    how = fcntl.LOCK_SH if mode == "repaired" else fcntl.LOCK_EX
    lock = os.open(os.path.join(folder, "catalogue.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    lines = []
    for name in names:
        fcntl.flock(lock, how)    # nobody may change the catalogue meanwhile
        digest = 0
        for section in sections(os.path.join(folder, "parts", name)):
            digest = zlib.crc32(section, digest)
        fcntl.flock(lock, fcntl.LOCK_UN)
        lines.append(f"{name} {digest:08x}\n")
    with os.fdopen(pipe, "w") as out:
        out.writelines(lines)


def main():
    mode, folder = sys.argv[1:]
    names = sorted(os.listdir(os.path.join(folder, "parts")))
    pipes = []
    for i in range(WORKERS):
        read_end, write_end = os.pipe()
        if os.fork() == 0:
            os.close(read_end)
            work(mode, folder, names[i::WORKERS], write_end)
            os._exit(0)
        os.close(write_end)
        pipes.append(read_end)
    lines = []
    for pipe in pipes:
        with os.fdopen(pipe) as f:
            lines += f.readlines()
    for _ in range(WORKERS):
        if os.wait()[1]:
            sys.exit("a worker failed")
    print(len(lines), hashlib.md5("".join(sorted(lines)).encode()).hexdigest())


main()
