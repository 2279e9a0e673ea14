#!/usr/bin/env python3
"""Fill DIR/spool with the month's statement jobs, as the billing run leaves them."""
import json
import os
import random
import sys

spool = os.path.join(sys.argv[1], "spool")
os.makedirs(spool, exist_ok=True)
rng = random.Random(31)
for n in range(600):
    lines = [{"item": f"sku-{rng.randrange(5000)}", "cents": rng.randrange(100, 90000)} for _ in range(30)]
    path = os.path.join(spool, f"{rng.getrandbits(64):016x}.job")
    with open(path, "w") as f:
        json.dump({"account": 100000 + n, "lines": lines}, f)
    os.utime(path, (1_700_000_000 + n, 1_700_000_000 + n))
