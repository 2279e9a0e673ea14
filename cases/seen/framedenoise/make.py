"""Writes the frames of a noisy grey video as PGM files."""
import os, random, sys

rng = random.Random(9)
root = os.path.join(sys.argv[1], "frames")
os.makedirs(root, exist_ok=True)
W, H = 1024, 768
noise = bytes(max(0, min(255, int(rng.gauss(0, 9)) + 40)) for _ in range(W * 211))
for n in range(16):
    rows = []
    for y in range(H):
        level = 30 + (y // 64 * 37 + n * 5) % 150
        table = bytes(min(255, i + level) for i in range(256))
        k = rng.randrange(len(noise) - W)
        rows.append(noise[k:k + W].translate(table))
    with open(os.path.join(root, f"f{n:04d}.pgm"), "wb") as f:
        f.write(b"P5\n%d %d\n255\n" % (W, H) + b"".join(rows))
