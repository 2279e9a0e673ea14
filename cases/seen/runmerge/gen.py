"""Sorted runs of a session store: key (u64), length (u32), JSON; length 0xffffffff deletes. Run 0 is the newest."""
import random
import struct
import sys

rng = random.Random(7)
agents = ["Firefox/140", "Chrome/139", "Safari/18", "curl/8.5", "okhttp/5"]
pool = []
for n in range(3000):
    cart = ",".join('{"sku":"%07x","n":%d}' % (rng.getrandbits(28), rng.randrange(1, 6)) for _ in range(rng.randrange(1, 9)))
    pool.append(
        '{"user":%d,"agent":"%s","lang":"en","csrf":"%032x","cart":[%s],"flash":null}'
        % (rng.randrange(10**7), rng.choice(agents), rng.getrandbits(128), cart)
    )
pool = [p.encode() for p in pool]
for run in range(4):
    with open("%s/run-%d" % (sys.argv[1], run), "wb") as out:
        for key in sorted(rng.sample(range(400000), 110000)):
            if rng.random() < 0.05:
                out.write(struct.pack("<QI", key, 0xFFFFFFFF))
            else:
                value = pool[rng.randrange(3000)] + b"%016x" % rng.getrandbits(64)
                out.write(struct.pack("<QI", key, len(value)) + value)
