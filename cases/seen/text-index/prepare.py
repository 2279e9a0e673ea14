import random, sys
rnd = random.Random(21)
words = ["".join(rnd.choices("etaoinshrdlu", k=rnd.randrange(2, 11))) for _ in range(40000)]
with open(sys.argv[1] + "/corpus.txt", "w") as f:
    for i in range(110):
        f.write(" ".join(rnd.choices(words, k=150000))[:999_999] + "\n")
