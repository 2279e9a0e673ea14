"""One index segment: 16 KiB blocks of (doc delta, term frequency) byte pairs, then a CRC per block, then a trailer."""
import random
import struct
import sys
import zlib

BLOCK = 16384
BLOCKS = 3072
rng = random.Random(99)
crcs = []
with open(sys.argv[1], "wb") as out:
    for _ in range(BLOCKS):
        block = rng.randbytes(BLOCK)
        crcs.append(zlib.crc32(block))
        out.write(block)
    out.write(struct.pack("<%dI" % BLOCKS, *crcs))
    out.write(struct.pack("<8sII", b"SEGMENT1", BLOCK, BLOCKS))
