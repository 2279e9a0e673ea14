"""Makes a day's worth of access events for the audit log."""
import os, random, sys

COUNT = 600
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(11)
users = ["u%04d" % i for i in range(300)]
verbs = ["login", "logout", "read", "update", "delete", "export", "grant"]
with open(os.path.join(d, "events.txt"), "w") as f:
    t = 1700000000
    for i in range(COUNT):
        t += r.randrange(0, 40)
        f.write("%d\t%s\t%s\t/records/%d\n" % (t, r.choice(users), r.choice(verbs), r.randrange(90000)))
