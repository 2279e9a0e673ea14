import os, random, sys

MESSAGES = 70
d = sys.argv[1]
os.makedirs(os.path.join(d, "outbox"), exist_ok=True)
r = random.Random(256)
for i in range(MESSAGES):
    with open(os.path.join(d, "outbox", "%04d.eml" % i), "w") as f:
        f.write("To: user%d@example.org\nSubject: Newsletter %d\n\n" % (r.randrange(1000), i))
        for _ in range(r.randrange(40, 400)):
            f.write("%064x\n" % r.getrandbits(256))
os.sync()
