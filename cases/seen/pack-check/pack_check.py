#!/usr/bin/env python3
"""pack-check STORE: reads every object of a backup store and compares it with its checksum."""
import os
import struct
import sys
import zlib

ENTRY = struct.Struct("<20sQII")  # id, offset, length, crc32


class Pack:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY)

    def object(self, offset, length):
        data = os.pread(self.fd, length, offset)
        if len(data) != length:
            raise ValueError(f"pack ends early at {offset}")
        return data

    def close(self):
        os.close(self.fd)


def load_index(path):
    with open(path, "rb") as f:
        return list(ENTRY.iter_unpack(f.read()))


def check(store):
    """Ids of the damaged objects, the number of objects and their bytes."""
    index = load_index(os.path.join(store, "objects.idx"))
    pack = Pack(os.path.join(store, "objects.pack"))
    damaged, size = [], 0
    for ident, offset, length, crc in index:
        if zlib.crc32(pack.object(offset, length)) != crc:
            damaged.append(ident.hex())
        size += length
    pack.close()
    return damaged, len(index), size


def main(args):
    if len(args) != 1:
        sys.exit("usage: pack-check STORE")
    damaged, objects, size = check(args[0])
    for ident in sorted(damaged):
        print("damaged", ident)
    print(f"{objects} objects, {size} bytes, {len(damaged)} damaged")


if __name__ == "__main__":
    main(sys.argv[1:])
