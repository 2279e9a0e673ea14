"""Fits class means of gradient histograms to patches: train.py [--keep-open] ARCHIVE"""
import argparse
import zlib

from dataset import ZipPatches, ZipPatchesPerWorker
from loader import Loader


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--keep-open", action="store_true")
    ap.add_argument("--steps", type=int, default=42)
    ap.add_argument("archive")
    a = ap.parse_args()
    data = (ZipPatchesPerWorker if a.keep_open else ZipPatches)(a.archive)
    batch = 8
    count, total, crc = [0] * 10, [[0.0] * 9 for _ in range(10)], 0
    for labels, pixels, features in Loader(data, batch, workers=2, seed=1).epoch(0, a.steps * batch):
        for label, patch, f in zip(labels, pixels, features):
            count[label] += 1
            total[label] = [t + v for t, v in zip(total[label], f)]
            crc = zlib.crc32(patch, crc)
    for label in range(10):
        print(label, count[label], *(f"{t / max(count[label], 1):.4f}" for t in total[label]))
    print(f"{sum(count)} patches, {crc:08x}")


if __name__ == "__main__":
    main()
