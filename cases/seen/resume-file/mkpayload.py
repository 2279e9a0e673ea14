"""Makes the payload that a peer would send, and the list of its pieces' hashes."""
import hashlib, os, random, sys

PIECES, SIZE = 4000, 8192
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rnd = random.Random(7)
with open(f"{out}/peer.bin", "wb") as data, open(f"{out}/pieces.sha1", "wb") as sums:
    for _ in range(PIECES):
        piece = rnd.randbytes(SIZE)
        data.write(piece)
        sums.write(hashlib.sha1(piece).digest())
