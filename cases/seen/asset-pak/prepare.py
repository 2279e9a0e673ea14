import random, struct, sys
rnd = random.Random(20)
N = 500000
with open(sys.argv[1] + "/assets.pak", "wb") as f:
    f.write(struct.pack("<4sIQ", b"PAK2", N, 16))
    off = 16 + 32 * N
    for i in range(N):
        size = rnd.randrange(100, 90000)
        f.write(struct.pack("<QQII8s", i * 0x9E3779B97F4A7C15 & (1 << 64) - 1, off, size, i % 4, b"tex%05d" % (i % 99999)))
        off += size
