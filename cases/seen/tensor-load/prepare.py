"""A weights file: length of the header, header in JSON, tensors."""
import json, os, random, struct, sys

TENSORS, BYTES = 240, 1_600_000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(114)
head = {}
for i in range(TENSORS):
    kind = "adapter" if i % 50 == 17 else "attention" if i % 2 else "mlp"
    head[f"layers.{i}.{kind}"] = {"dtype": "F16", "shape": [800, 1000], "offsets": [i * BYTES, (i + 1) * BYTES]}
text = json.dumps(head).encode()
with open(os.path.join(d, "model.weights"), "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    for i in range(TENSORS):
        f.write(r.randbytes(BYTES))
    f.flush()
    os.fsync(f.fileno())
