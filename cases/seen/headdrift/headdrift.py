"""headdrift: how far does the classifier head move between training checkpoints?

usage: headdrift.py [--lazy] CKPT_DIR

For every checkpoint prints the norm of the head, its distance and cosine to the
head of the checkpoint before, and the class whose weights moved most.
"""
import array
import json
import math
import os
import struct
import sys
import zlib


class Checkpoint:
    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb")
        magic, size = struct.unpack("<4sI", self.file.read(8))
        if magic != b"CKP1":
            raise ValueError(f"{path}: not a checkpoint")
        head = json.loads(self.file.read(size))
        self.step = head["step"]
        self.tensors = head["tensors"]
        self.base = 8 + size

    def tensor(self, name):
        entry = self.tensors[name]
        self.file.seek(self.base + entry["offset"])
        data = self.file.read(entry["nbytes"])
        if zlib.crc32(data) != entry["crc"]:
            raise ValueError(f"{self.path}: {name} is damaged")
        values = array.array("f")
        values.frombytes(data)
        return values

    def state_dict(self):
        return {name: self.tensor(name) for name in self.tensors}

    def close(self):
        self.file.close()


def load_head(path, lazy):
    ckpt = Checkpoint(path)
    try:
        if lazy:
            return ckpt.step, ckpt.tensor("head.weight"), ckpt.tensors["head.weight"]["shape"]
        state = ckpt.state_dict()
        return ckpt.step, state["head.weight"], ckpt.tensors["head.weight"]["shape"]
    finally:
        ckpt.close()


def norm(v):
    return math.sqrt(sum(x * x for x in v))


def main(argv):
    lazy = "--lazy" in argv
    folder = [a for a in argv if not a.startswith("--")][0]
    before = None
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".ckpt"):
            continue
        step, head, (classes, width) = load_head(os.path.join(folder, name), lazy)
        line = f"step {step:6d}  norm {norm(head):.5f}"
        if before is not None:
            dot = sum(a * b for a, b in zip(head, before))
            moved = [norm([a - b for a, b in zip(head[c * width:(c + 1) * width],
                                                 before[c * width:(c + 1) * width])])
                     for c in range(classes)]
            line += (f"  moved {math.sqrt(sum(m * m for m in moved)):.5f}"
                     f"  cos {dot / (norm(head) * norm(before)):.6f}  class {moved.index(max(moved))}")
        print(line)
        before = head


main(sys.argv[1:])
