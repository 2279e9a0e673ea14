import os, random, sys
d = sys.argv[1] + "/tables"
os.makedirs(d, exist_ok=True)
rnd = random.Random(19)
blob = rnd.randbytes(1 << 20)
for t in range(6):
    key = 0
    with open(f"{d}/{t:06d}.sst", "wb") as f:
        for blk in range(5860):
            out = bytearray()
            for r in range(32):
                key += rnd.randrange(1, 60)
                o = (key * 7919 + t) % 1000000
                out += key.to_bytes(8, "big") + t.to_bytes(8, "big") + blob[o:o + 112]
            f.write(out)
