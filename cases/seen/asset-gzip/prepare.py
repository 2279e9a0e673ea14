import random, sys
rnd = random.Random(23)
words = ["".join(rnd.choices("abcdefghijklmnopqrstuvwxyz$_", k=rnd.randrange(1, 9))) for _ in range(5000)]
for n in ("app", "vendor"):
    with open(f"{sys.argv[1]}/{n}.js", "w") as f:
        size = 0
        while size < 14_000_000:
            s = "function " + words[rnd.randrange(5000)] + "(" + ",".join(rnd.choices(words, k=3)) + "){return " + "+".join(rnd.choices(words, k=12)) + "}\n"
            f.write(s)
            size += len(s)
