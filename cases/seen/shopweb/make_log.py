#!/usr/bin/env python3
"""Writes the requests of a web shop: time, session id, path."""
import random, sys
path, n = sys.argv[1], int(sys.argv[2])
rnd = random.Random(404)
active, t = [], 1700000000
with open(path, "w") as f:
    for i in range(n):
        t += rnd.randrange(0, 6)
        if len(active) < 40 or rnd.random() < 0.42:
            active.append("%032x" % rnd.getrandbits(128))
            if len(active) > 300:
                active.pop(0)
        sid = active[-1 - min(len(active) - 1, int(rnd.expovariate(1 / 60)))]
        page = rnd.choice(["/", "/search?q=%d" % rnd.randrange(99), "/item/%d" % rnd.randrange(5000),
                           "/cart/add/%d" % rnd.randrange(5000), "/cart", "/login"])
        f.write("%d %s %s\n" % (t, sid, page))
