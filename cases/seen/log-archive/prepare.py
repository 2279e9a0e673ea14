import os, random, sys

LOGS, LINES = 6, 32000
d = sys.argv[1]
os.makedirs(os.path.join(d, "logs"), exist_ok=True)
r = random.Random(245)
for i in range(LOGS):
    with open(os.path.join(d, "logs", "app.%d.log" % i), "w") as f:
        for n in range(LINES):
            f.write("2024-05-%02d 10:%02d:%02d worker-%d handled %08x in %d us\n" % (
                i + 1, n // 60 % 60, n % 60, r.randrange(8), r.getrandbits(32), r.randrange(100000)))
os.sync()
