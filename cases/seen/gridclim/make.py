"""Writes a gridded archive: header, then fields[day][lat][lon] as 16-bit temperatures (0.01 K above 200 K)."""
import array, math, os, random, struct, sys

days, lats, lons = 300, 361, 720
rng = random.Random(8)
noise = array.array("h", (int(rng.gauss(0, 250)) for _ in range(lons * 97)))
rows = [array.array("h", (int(7500 + 2500 * math.cos((lat - 180) / 360 * math.pi) + 300 * math.sin(x / 57)) for x in range(lons)))
        for lat in range(lats)]
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<4s3i", b"GRD1", days, lats, lons))
    for day in range(days):
        season = int(900 * math.sin(day / 365 * 2 * math.pi))
        out = array.array("h")
        shift = rng.randrange(96 * lons)
        wave = noise[shift:] + noise[:shift]
        field = array.array("h")
        for row in rows:
            field.extend(row)
        # a cheap way to make the days differ: rotate the field by the weather, add the season in a corner
        cut = rng.randrange(lons)
        out.extend(field[cut:])
        out.extend(field[:cut])
        out[:len(wave)] = array.array("h", (a + b // 4 + season for a, b in zip(out, wave)))
        f.write(out.tobytes())
    f.flush()
    os.fsync(f.fileno())
