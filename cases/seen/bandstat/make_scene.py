"""Write a scene of a satellite: a 64-byte header, then pixels of 12 bands, 16 bits, band-interleaved by pixel."""
import os
import struct
import sys

out, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
bands = 12
os.makedirs(os.path.dirname(out), exist_ok=True)
with open(out, "wb") as f:
    f.write(struct.pack("<8sIII", b"BIPSCENE", width, height, bands).ljust(64, b"\0"))
    for _ in range(height):
        f.write(os.urandom(width * bands * 2))
