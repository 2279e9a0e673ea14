"""Makes a month of web server access log, packed with bzip2 as logrotate does."""
import bz2, os, random, sys

LINES = 160000
out = sys.argv[1]
os.makedirs(os.path.dirname(out), exist_ok=True)
rnd = random.Random(11)
paths = [f"/shop/{rnd.choice(['item', 'cart', 'img', 'api/v2'])}/{rnd.randrange(10**6)}" for _ in range(4000)]
agents = [f"Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0" for n in range(90, 140)]
with bz2.open(out, "wt", compresslevel=9) as f:
    for n in range(LINES):
        s = n * 11
        f.write(
            f"10.{rnd.randrange(4)}.{rnd.randrange(256)}.{rnd.randrange(256)} - - "
            f"[{1 + s // 86400:02}/Mar/2024:{s // 3600 % 24:02}:{s // 60 % 60:02}:{s % 60:02} +0000] "
            f"\"GET {rnd.choice(paths)} HTTP/1.1\" {rnd.choice([200] * 20 + [304, 404, 500])} "
            f"{rnd.randrange(200, 90000)} \"-\" \"{rnd.choice(agents)}\"\n"
        )
