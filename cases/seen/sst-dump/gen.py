"""Write a sorted table: header, then entries [u16 klen][u32 vlen][u32 expires][u8 kind][key][value]."""
import os, random, struct, sys
d = sys.argv[1]
os.makedirs(f"{d}/db", exist_ok=True)
r = random.Random(4242)
pool = r.randbytes(1 << 20)
with open(f"{d}/db/000017.sst", "wb") as f:
    n = 0
    body = 0
    f.write(b"\0" * 64)
    while body < 190 << 20:
        key = b"session/%02x/%010d" % (n * 256 // 330000 % 256, n)
        vlen = int(min(4000, r.lognormvariate(6.1, 0.8)))
        o = r.randrange(len(pool) - vlen)
        exp = 0 if r.random() < 0.4 else 1700000000 + r.randrange(10**7)
        kind = 1 if r.random() < 0.06 else 0
        if kind:
            vlen = 0
        f.write(struct.pack("<HIIB", len(key), vlen, exp, kind) + key + pool[o:o + vlen])
        body += 11 + len(key) + vlen
        n += 1
    f.seek(0)
    f.write(b"SST2" + struct.pack("<QQ", n, body))
