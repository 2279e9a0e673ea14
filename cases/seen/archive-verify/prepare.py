"""An archive of 8 KiB members with a table of contents sorted by name hash."""
import os, random, struct, sys, zlib

MEMBERS, SIZE, LISTED = 30000, 8192, 15000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(99)
toc = []
with open(os.path.join(d, "archive.bin"), "wb") as f:
    for i in range(MEMBERS):
        body = r.randbytes(SIZE)
        f.write(body)
        toc.append((i * SIZE, SIZE, zlib.crc32(body)))
    f.flush()
    os.fsync(f.fileno())
r.shuffle(toc)
with open(os.path.join(d, "toc.bin"), "wb") as f:
    for entry in toc[:LISTED]:
        f.write(struct.pack("<QII", *entry))
os.sync()
