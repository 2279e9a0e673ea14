"""A Maildir with 3000 old messages and an mbox with 320 to import."""
import os, random, sys
d = sys.argv[1]
r = random.Random(12)
words = "the invoice meeting please find attached regards budget report draft monday review server order".split()
def msg(i):
    body = "\n".join(" ".join(r.choices(words, k=r.randrange(5, 14))) for _ in range(r.randrange(4, 60)))
    return (f"Message-ID: <{i}.{r.randrange(10**8)}@mx.example.org>\nFrom: user{r.randrange(90)}@example.org\n"
            f"To: archive@example.org\nDate: Tue, 5 Mar 2024 10:{i % 60:02d}:00 +0000\n"
            f"Subject: {' '.join(r.choices(words, k=4))}\n\n{body}\n")
for s in ("cur", "new", "tmp"):
    os.makedirs(f"{d}/Maildir/{s}", exist_ok=True)
for i in range(3000):
    with open(f"{d}/Maildir/cur/{1700000000 + i}.M{i}P1.mx:2,S", "w") as f:
        f.write(msg(i))
with open(f"{d}/import.mbox", "w") as f:
    for i in range(320):
        f.write(f"From user@example.org Tue Mar  5 10:00:00 2024\n{msg(5000 + i)}\n")
