import random, sys
rnd = random.Random(13)
with open(sys.argv[1] + "/values.log", "wb") as f:
    for i in range(75):
        f.write(rnd.randbytes(4_096_000))
