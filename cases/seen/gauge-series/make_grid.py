"""Makes rain.grid: a 64-byte header and STEPS fields of LAT x LON float32 (time, lat, lon)."""
import array, os, random, struct, sys

STEPS, LAT, LON = 1600, 120, 200
out = sys.argv[1]
os.makedirs(os.path.dirname(out), exist_ok=True)
rnd = random.Random(41)
base = array.array("f", (rnd.randrange(0, 400) / 8 for _ in range(LAT * LON * 2)))
with open(out, "wb") as f:
    f.write(struct.pack("<4sIII", b"RGRD", STEPS, LAT, LON).ljust(64, b"\0"))
    for step in range(STEPS):
        at = rnd.randrange(0, LAT * LON)
        f.write(base[at:at + LAT * LON].tobytes())
