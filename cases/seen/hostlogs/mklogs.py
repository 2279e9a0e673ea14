"""Access logs of twelve hosts for the same day, each sorted by time."""
import os
import random
import sys

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(31)
paths = ["/" + "/".join(rng.choice(["api", "static", "user", "img", "v2", "cart", "search"]) for _ in range(rng.randrange(1, 5))) for _ in range(300)]
agents = ["Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/125.0", "curl/8.5.0", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"]
for h in range(12):
    t = 0.0
    with open(os.path.join(out, f"host{h:02d}.log"), "w", buffering=1 << 20) as f:
        while True:
            t += rng.random() * 1.9
            if t >= 86400:
                break
            s = int(t)
            f.write(f"2024-03-05T{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}.{int(t * 1000) % 1000:03d}Z 10.{rng.getrandbits(8)}.{rng.getrandbits(8)}.{rng.getrandbits(8)} "
                    f"GET {paths[int(rng.random() * 300)]}?id={rng.getrandbits(20)} {200 if rng.random() < .9 else 404} {rng.getrandbits(14)} \"{agents[rng.getrandbits(8) % 3]}\"\n")
