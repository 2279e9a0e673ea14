import random, sys
rnd = random.Random(16)
with open(sys.argv[1] + "/take.raw", "wb") as f:
    for i in range(100):
        f.write(rnd.randbytes(3_072_000))
