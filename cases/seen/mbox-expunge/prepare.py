"""A mailbox and the numbers of the messages that its owner has deleted."""
import os, random, sys

MESSAGES, DELETED = 2000, 90
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(112)
words = "please find the report attached as agreed we meet on monday and then go on with it".split()
with open(os.path.join(d, "inbox.before"), "w") as f:
    for i in range(MESSAGES):
        f.write("From u%d@mail.example Mon Jan  1 00:00:00 2024\nSubject: message %d\n\n" % (r.randrange(200), i))
        for _ in range(r.randrange(20, 180)):
            f.write(" ".join(r.choices(words, k=12)) + "\n")
        f.write("\n")
with open(os.path.join(d, "deleted.txt"), "w") as f:
    for n in sorted(r.sample(range(MESSAGES), DELETED)):
        f.write("%d\n" % n)
