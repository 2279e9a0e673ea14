"""Sensor readings as CSV: sensor, time in milliseconds, value."""
import os, random, sys

COUNT = 500_000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(101)
t = 1_700_000_000_000
with open(os.path.join(d, "readings.csv"), "w") as f:
    for _ in range(COUNT):
        t += r.randrange(1, 30)
        f.write(f"{r.randrange(900)},{t},{r.randrange(100000) / 100}\n")
