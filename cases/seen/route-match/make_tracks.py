#!/usr/bin/env python3
"""Makes reference routes and many recorded tracks as CSV files, one a ride."""
import math
import os
import random
import sys

ROUTES, TRACKS, POINTS = 5, 1200, 60

out = sys.argv[1]
rng = random.Random(99)
os.makedirs(os.path.join(out, "routes"), exist_ok=True)


def walk(n):
    lat, lon, heading = 47.0 + rng.random(), 8.0 + rng.random(), rng.random() * 6.28
    points = []
    for _ in range(n):
        heading += rng.gauss(0, 0.25)
        lat += 0.0012 * math.sin(heading)
        lon += 0.0016 * math.cos(heading)
        points.append((lat, lon))
    return points


def save(path, points):
    with open(path, "w") as f:
        f.write("lat,lon\n")
        for lat, lon in points:
            f.write(f"{lat:.6f},{lon:.6f}\n")


routes = [walk(POINTS) for _ in range(ROUTES)]
for i, r in enumerate(routes):
    save(os.path.join(out, "routes", f"route-{i:02}.csv"), r)
for i in range(TRACKS):
    month = os.path.join(out, "tracks", f"2024-{i % 12 + 1:02}")
    os.makedirs(month, exist_ok=True)
    base = rng.choice(routes) if rng.random() < 0.8 else walk(POINTS)
    noisy = [(a + rng.gauss(0, 0.00008), b + rng.gauss(0, 0.00008)) for a, b in base]
    save(os.path.join(month, f"ride-{i:05}.csv"), noisy)
