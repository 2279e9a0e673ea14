import random, sys
rnd = random.Random(12)
with open(sys.argv[1] + "/postings.idx", "wb") as f:
    for i in range(95):
        f.write(rnd.randbytes(4_000_000 // 4096 * 4096))
