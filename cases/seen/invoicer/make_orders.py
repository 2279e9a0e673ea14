#!/usr/bin/env python3
"""Writes a year's orders as CSV: date;customer;sku:qty:cents,sku:qty:cents..."""
import random, sys
path, n = sys.argv[1], int(sys.argv[2])
rnd = random.Random(2024)
with open(path, "w") as f:
    for i in range(n):
        day = 1 + i * 364 // n
        items = ",".join("A%04d:%d:%d" % (rnd.randrange(3000), rnd.randrange(1, 20), rnd.randrange(99, 49900))
                         for _ in range(rnd.randrange(1, 9)))
        f.write("%d;C%05d;%s\n" % (day, rnd.randrange(900), items))
