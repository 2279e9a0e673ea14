"""Writes eight training checkpoints of a small vision transformer."""
import array, json, os, random, struct, sys, zlib

root = sys.argv[1]
os.makedirs(os.path.join(root, "ckpts"), exist_ok=True)
rng = random.Random(20)
pool = array.array("f", (rng.gauss(0, 0.02) for _ in range(700_000)))


def block(count, salt):
    start = (salt * 7919) % len(pool)
    out = array.array("f")
    while len(out) < count:
        out.extend(pool[start:start + count - len(out)])
        start = 0
    return out


layers = [("embed.patch.weight", (768, 768)), ("embed.position", (197, 768))]
for n in range(2):
    for part, shape in (("attn.qkv.weight", (2304, 768)), ("attn.out.weight", (768, 768)),
                        ("mlp.up.weight", (3072, 768)), ("mlp.down.weight", (768, 3072))):
        layers.append((f"blocks.{n}.{part}", shape))
head = array.array("f", (rng.gauss(0, 0.02) for _ in range(20 * 768)))
for step in range(6):
    header, blobs, offset = {}, [], 0
    for salt, (name, shape) in enumerate(layers + [("head.weight", (20, 768)), ("head.bias", (20,))]):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        if name == "head.weight":
            head = array.array("f", (x + rng.gauss(0, 0.002 / (step + 1)) for x in head))
            data = head.tobytes()
        else:
            data = block(count, salt + step * 31).tobytes()
        header[name] = {"shape": shape, "offset": offset, "nbytes": len(data), "crc": zlib.crc32(data)}
        blobs.append(data)
        offset += len(data)
    text = json.dumps({"step": (step + 1) * 5000, "tensors": header}).encode()
    with open(os.path.join(root, "ckpts", f"step_{(step + 1) * 5000:06d}.ckpt"), "wb") as f:
        f.write(struct.pack("<4sI", b"CKP1", len(text)))
        f.write(text)
        for blob in blobs:
            f.write(blob)
        f.flush()
        os.fsync(f.fileno())
