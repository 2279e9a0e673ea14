"""Loads the adapter layers of a model."""
import json
import os
import struct
import sys
import zlib


def load_all(path):
    with open(path, "rb") as f:
        blob = f.read()
    (n,) = struct.unpack("<Q", blob[:8])
    head = json.loads(blob[8:8 + n])
    body = memoryview(blob)[8 + n:]
    tensors = {name: body[slice(*t["offsets"])] for name, t in head.items()}
    return {name: t for name, t in tensors.items() if name.endswith(".adapter")}


def load_wanted(path):
    tensors = {}
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(n))
        for name, t in head.items():
            if name.endswith(".adapter"):
                begin, end = t["offsets"]
                f.seek(8 + n + begin)
                tensors[name] = f.read(end - begin)
    return tensors


def main():
    mode, folder = sys.argv[1:]
    load = load_wanted if mode == "repaired" else load_all
    for name, tensor in load(os.path.join(folder, "model.weights")).items():
        print(name, len(tensor), f"{zlib.crc32(tensor):08x}")


main()
