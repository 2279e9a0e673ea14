#!/usr/bin/python3
"""Makes last month's access log of a web shop, about 160 MB."""
import os, random, sys
rnd = random.Random(12)
os.makedirs(sys.argv[1], exist_ok=True)
paths = [f"/shop/{rnd.choice(['item','cart','list','img'])}/{rnd.randrange(10**6)}" for _ in range(3000)]
block = [f'10.{rnd.randrange(256)}.{rnd.randrange(256)}.{rnd.randrange(256)} - - "GET {rnd.choice(paths)} HTTP/1.1" '
         f'{rnd.choice([200, 200, 200, 304, 404])} {rnd.randrange(60000)} "Mozilla/5.0 ({rnd.choice(["X11", "Win", "Mac"])})"\n'
         for _ in range(60000)]
with open(os.path.join(sys.argv[1], "access.log.1"), "w") as f:
    for day in range(1, 32):
        rnd.shuffle(block)
        f.write(f"# day {day}\n")
        f.writelines(block)
    f.flush()
    os.fsync(f.fileno())
