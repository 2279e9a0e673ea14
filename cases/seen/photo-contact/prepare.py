import os, random, struct, sys
d = sys.argv[1] + "/photos"
os.makedirs(d, exist_ok=True)
rnd = random.Random(5)
W, H = 160, 130
raw = rnd.randbytes(6 << 20)
for i in range(66):
    preview = bytes(((x * 3 + y * 5 + i * 7 + c * 40) & 255) for y in range(H) for x in range(W) for c in range(3))
    head = struct.pack("<4sIIIII", b"CAMR", 1, 64, len(preview), W, H).ljust(64, b"\0")
    off = rnd.randrange(1 << 20)
    with open(f"{d}/IMG_{i:04d}.cam", "wb") as f:
        f.write(head + preview + raw[off:off + 5_000_000])
