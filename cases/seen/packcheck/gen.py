"""A small backup repository: 6 packs of deduplicated chunks, an index, one snapshot."""
import os, random, sys, zlib
d = sys.argv[1]
os.makedirs(f"{d}/repo/packs", exist_ok=True)
r = random.Random(77)
index = []
for p in range(6):
    off = 0
    with open(f"{d}/repo/packs/{p:02d}.pack", "wb") as f:
        while off < 52 << 20:
            n = r.randint(3000, 14000)
            data = r.randbytes(n)
            f.write(data)
            index.append((len(index), p, off, n, zlib.crc32(data)))
            off += n
with open(f"{d}/repo/index", "w") as f:
    for row in index:
        f.write("%d %d %d %d %08x\n" % row)
# a snapshot after two years of dedup: the chunks of a file lie all over the packs
ids = [row[0] for row in index]
r.shuffle(ids)
with open(f"{d}/repo/snapshot", "w") as f:
    n = 0
    while ids:
        take = min(len(ids), 1 + int(r.expovariate(1 / 12)))
        f.write("home/user/doc%05d %s\n" % (n, ",".join(map(str, ids[:take]))))
        ids = ids[take:]
        n += 1
