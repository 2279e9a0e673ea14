"""Messages for the broker, one a line."""
import os, random, sys

COUNT = 250
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(102)
with open(os.path.join(d, "messages.txt"), "w") as f:
    for i in range(COUNT):
        f.write('{"order":%d,"state":"%s","note":"%s"}\n' % (
            i, r.choice(["new", "paid", "sent"]), "x" * r.randrange(40, 400)))
