"""Three sorted runs of a key-value store: [u32 key-number big endian][u32 seq][u16 vlen][value]; vlen 0xffff = deleted."""
import os, random, struct, sys
d = sys.argv[1]
os.makedirs(f"{d}/runs", exist_ok=True)
r = random.Random(2718)
words = [r.randbytes(5).hex().encode() for _ in range(60000)]
pool = b",".join(r.choices(words, k=95000))
for run in range(3):
    out = bytearray()
    key = 0
    with open(f"{d}/runs/{run}.run", "wb") as f:
        total = 0
        while total < 44 << 20:
            key += r.randrange(1, 7)
            if r.random() < 0.05:
                rec = struct.pack(">IIH", key, run * 10**6 + key, 0xFFFF)
            else:
                n = r.randrange(100, 900)
                o = r.randrange(len(pool) - n)
                rec = struct.pack(">IIH", key, run * 10**6 + key, n) + pool[o:o + n]
            out += rec
            total += len(rec)
            if len(out) > 1 << 20:
                f.write(out)
                out.clear()
        f.write(out)
