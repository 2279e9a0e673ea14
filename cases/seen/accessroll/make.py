"""Writes the access log of a file service."""
import os, random, sys

rng = random.Random(6)
agents = ["Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0", "curl/8.5.0", "rclone/v1.66",
          "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15"]
tails = []
for _ in range(5000):
    path = f"/{rng.choice(['files', 'share', 'thumbs', 'api'])}/{rng.choice(['a', 'b', 'c', 'team', 'photos'])}/{rng.randrange(4000)}"
    status = rng.choices([200, 206, 304, 404, 500], [70, 10, 14, 5, 1])[0]
    tails.append(f'"GET {path} HTTP/1.1" {status} {int(rng.paretovariate(0.9) * 300) % 9_000_000} {rng.expovariate(20):.4f} "{rng.choice(agents)}"\n')
with open(sys.argv[1], "w") as f:
    for sec in range(0, 4 * 3600, 2):
        stamp = f"[12/May/2026:{8 + sec // 3600:02d}:{sec // 60 % 60:02d}:{sec % 60:02d} +0000]"
        f.write("".join(f"10.{rng.randrange(4)}.{rng.randrange(256)}.{rng.randrange(256)} - - {stamp} {rng.choice(tails)}" for _ in range(240)))
    f.flush()
    os.fsync(f.fileno())
