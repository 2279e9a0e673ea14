#!/usr/bin/env python3
"""Writes a repository of packages (*.qpk) and the list of those to install."""
import hashlib, os, random, sys
top, n, base = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rnd = random.Random(33)
os.makedirs(top + "/repo", exist_ok=True)
words = "lib core net data img text http yaml zlib json audio font math geo term time log mail".split()
names = []
old = []
for i in range(base + n):
    name = "%s-%s%d" % (rnd.choice(words), rnd.choice(words), i)
    names.append(name)
    body = b""
    files = []
    for j in range(rnd.randrange(1, 4)):
        data = rnd.randbytes(rnd.randrange(300, 6000))
        files.append("%s/share/%s/part%d.bin %d %s" % ("usr", name, j, len(data), hashlib.sha256(data).hexdigest()))
        body += data
    docs = ["usr/share/doc/%s/topic-%02d.html" % (name, j) for j in range(rnd.randrange(12, 40))]
    head = "Package: %s\nVersion: %d.%d.%d\nDepends: %s\nDescription: %s\n" % (
        name, rnd.randrange(9), rnd.randrange(30), rnd.randrange(9),
        ", ".join(rnd.sample(names, min(len(names), 5))), " ".join(rnd.choices(words, k=60)))
    head += "Conffiles:\n" + "".join(" %s %s\n" % (d, hashlib.md5(d.encode()).hexdigest()) for d in docs)
    head += "Files:\n" + "".join(" " + f + "\n" for f in files)
    if i < base:
        old.append(head)
        continue
    with open("%s/repo/%s.qpk" % (top, name), "wb") as f:
        f.write(head.encode() + b"\n" + body)
with open(top + "/wanted.txt", "w") as f:
    f.write("\n".join(names[base:]) + "\n")
with open(top + "/base-status", "w") as f:
    f.write("\n".join(old))
