import os, random, sys

HOSTS, LINES = 50, 3000
d = sys.argv[1]
os.makedirs(os.path.join(d, "logs"), exist_ok=True)
r = random.Random(167)
levels = ["INFO"] * 8 + ["WARN", "ERROR"]
for h in range(HOSTS):
    with open(os.path.join(d, "logs", "host%02d.log" % h), "w") as f:
        for i in range(LINES):
            f.write("2024-03-01T12:%02d:%02d host%02d %-5s request %08x took %d ms\n" % (
                i // 60 % 60, i % 60, h, r.choice(levels), r.getrandbits(32), r.randrange(900)))
