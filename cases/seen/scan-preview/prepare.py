"""An 8000 x 8000 bitmap of 24 bits."""
import os, random, struct, sys

W = H = 8000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(104)
noise = r.randbytes(W * 3 * 4)
with open(os.path.join(d, "scan.bmp"), "wb") as f:
    f.write(struct.pack("<2sIHHI", b"BM", 54 + W * H * 3, 0, 0, 54))
    f.write(struct.pack("<IiiHHIIiiII", 40, W, H, 1, 24, 0, W * H * 3, 11811, 11811, 0, 0))
    for y in range(H):
        k = r.randrange(W * 9)
        f.write(noise[k:k + W * 3])
    f.flush()
    os.fsync(f.fileno())
