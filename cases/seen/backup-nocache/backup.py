"""Backs up a folder into a pack of chunks."""
import hashlib
import os
import sys
import zlib

BLOCK = 1 << 20
base = sys.argv[1]
one_pass = "--one-pass" in sys.argv


def blocks(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        while b := os.read(fd, BLOCK):
            yield b
    finally:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def cuts(b):
    """Chunk boundaries within a block."""
    out, at = [], 0
    while (at := b.find(b"\x00\x01", at)) >= 0:
        at += 2
        if not out or at - out[-1] > 65536:
            out.append(at)
    return out + [len(b)]


def store(pack, b, ends):
    """Stores the chunks that the repository does not have yet."""
    start, ids = 0, []
    for e in ends:
        chunk = b[start:e]
        key = zlib.crc32(chunk)
        ids.append(key)
        if key not in known:
            known.add(key)
            pack.write(chunk)
        start = e
    return ids


known = set(map(int, open(base + "/known.idx")))
index, total = [], 0
with open(base + "/repo.pack", "wb") as pack:
    for name in sorted(os.listdir(base + "/home")):
        path = f"{base}/home/{name}"
        if one_pass:
            h, ids = hashlib.sha1(), []
            for b in blocks(path):
                h.update(b)
                ids += store(pack, b, cuts(b))
            digest = h.hexdigest()
        else:
            h = hashlib.sha1()
            for b in blocks(path):
                h.update(b)
            digest = h.hexdigest()
            ends = [cuts(b) for b in blocks(path)]
            ids = []
            for b, e in zip(blocks(path), ends):
                ids += store(pack, b, e)
        index.append((name, digest))
        total += sum(ids)
print(len(index), index[-1][1], total)
