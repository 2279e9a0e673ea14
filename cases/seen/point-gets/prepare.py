import random, sys
rnd = random.Random(22)
with open(sys.argv[1] + "/records.dat", "wb") as f:
    for i in range(90):
        f.write(rnd.randbytes(4_096_000))
