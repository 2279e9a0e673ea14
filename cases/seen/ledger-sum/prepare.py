import os, random, sys

LINES = 60000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(190)
with open(os.path.join(d, "ledger.txt"), "w") as f:
    for i in range(LINES):
        f.write("2024-%02d-%02d %s %d %s\n" % (
            r.randrange(1, 13), r.randrange(1, 29), r.choice(["debit", "credit"]), r.randrange(1, 99999),
            r.choice(["office supplies", "travel", "rent of the warehouse", "fees", "web shop sales"])))
