"""One epoch of the training input pipeline: yields samples, makes batches."""
import os
import struct
import sys
import zlib


def from_files(folder):
    with open(os.path.join(folder, "epoch.txt")) as f:
        names = f.read().split()
    for name in names:
        with open(os.path.join(folder, "samples", name), "rb") as f:
            yield f.read()


def from_shard(folder):
    with open(os.path.join(folder, "samples.shard"), "rb", buffering=1 << 20) as f:
        while header := f.read(4):
            yield f.read(struct.unpack("<I", header)[0])


def batches(samples, size=64):
    batch = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def main():
    mode, folder = sys.argv[1:]
    source = from_shard if mode == "repaired" else from_files
    n = size = crc = 0
    for batch in batches(source(folder)):
        joined = b"".join(batch)
        n += len(batch)
        size += len(joined)
        crc = zlib.crc32(joined, crc)
    print(f"{n} samples, {size} bytes, {crc:08x}")


main()
