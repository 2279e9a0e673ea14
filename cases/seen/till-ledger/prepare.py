import random, struct, sys
rnd = random.Random(8)
with open(sys.argv[1] + "/till.bin", "wb") as f:
    for i in range(130000):
        f.write(struct.pack(">bhiqhhi", rnd.randrange(9), rnd.randrange(500), i, 1700000000000 + i * 731, rnd.randrange(1, 9), rnd.randrange(3), rnd.randrange(99, 99999)))
