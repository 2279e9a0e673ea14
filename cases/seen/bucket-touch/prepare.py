import random, sys
rnd = random.Random(17)
with open(sys.argv[1] + "/seen.dbm", "wb") as f:
    for i in range(75):
        f.write(rnd.randbytes(4_096_000))
