"""Makes the thumbnail store of a photo manager: grey 64x64 and 80x64 thumbnails in one pack with an index."""
import os, random, sys

rng = random.Random(31)
N = 48_000
with open(os.path.join(sys.argv[1], "thumbs.pack"), "wb") as pack, open(os.path.join(sys.argv[1], "thumbs.idx"), "w") as idx:
    at, old = 0, []
    for n in range(N):
        if old and rng.random() < 0.08:
            width, data = rng.choice(old)
            data = bytearray(data)
            data[rng.randrange(len(data))] ^= 3
        else:
            # 8x8 patches of light and shadow with a grain
            width = rng.choice([64, 80])
            dim = rng.randrange(40, 256)
            patches = rng.randbytes(64).translate(bytes(i * dim >> 8 for i in range(256)))
            data = bytearray()
            for y in range(8):
                row = b"".join(patches[y * 8 + x:y * 8 + x + 1] * (width // 8) for x in range(8))
                data += row * 8
            for _ in range(12):
                data[rng.randrange(len(data))] = rng.randrange(256)
            if len(old) < 1500:
                old.append((width, bytes(data)))
        pack.write(data)
        idx.write(f"IMG_{rng.randrange(10**7):07d}_{n}.jpg\t{at}\t{width}\t64\n")
        at += len(data)
    pack.flush()
    os.fsync(pack.fileno())
