"""Packs rotated logs into compressed archives, safely on disk."""
import bz2
import os
import sys


def pack(source, target):
    compressor = bz2.BZ2Compressor(9)
    size = 0
    with open(source, "rb") as f, open(target, "wb") as out:
        while block := f.read(1 << 18):
            size += out.write(compressor.compress(block))
        size += out.write(compressor.flush())
        out.flush()
        os.fsync(out.fileno())
    return size


def main():
    folder = sys.argv[1]
    logs, archive = os.path.join(folder, "logs"), os.path.join(folder, "archive")
    os.makedirs(archive, exist_ok=True)
    names = sorted(os.listdir(logs))
    total = sum(pack(os.path.join(logs, n), os.path.join(archive, n + ".bz2")) for n in names)
    print(len(names), "logs", total, "bytes")


main()
