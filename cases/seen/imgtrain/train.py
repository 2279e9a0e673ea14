"""One epoch over a packed image file, in shuffled order.

The file holds raw 256x256 RGB images without gaps.  The "model" is a running
checksum of the brightened images, which stands for the forward pass.
"""
import argparse
import mmap
import random
import zlib

SIDE = 256
RECORD = SIDE * SIDE * 3
BRIGHTEN = bytes(round(255 * (v / 255) ** 0.8) for v in range(256))


class PackedImages:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.mm = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        # We shuffle, so read-ahead into the next image is of no use to us.
        self.mm.madvise(mmap.MADV_RANDOM)

    def __len__(self):
        return len(self.mm) // RECORD

    def __getitem__(self, i):
        return self.mm[i * RECORD:(i + 1) * RECORD]


def loader(dataset, batch, seed, limit):
    order = list(range(len(dataset)))
    random.Random(seed).shuffle(order)
    order = order[:limit]
    for at in range(0, len(order), batch):
        yield [dataset[i] for i in order[at:at + batch]]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("images")
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--limit", type=int, default=500, help="images per epoch")
    a = ap.parse_args()

    steps = seen = state = 0
    for batch in loader(PackedImages(a.images), a.batch, a.seed, a.limit):
        for image in batch:
            state = zlib.adler32(image.translate(BRIGHTEN), state)
            seen += 1
        steps += 1
    print(f"steps {steps} images {seen} state {state:08x}")


if __name__ == "__main__":
    main()
