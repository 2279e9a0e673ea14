"""Counts words and licence phrases in every file of a commit."""
import re
import subprocess
import sys
from collections import Counter

repo = sys.argv[1]
batch = "--batch" in sys.argv
PHRASE = re.compile(rb"without warranty|permission (?:copy|modify)|as is|any kind")


def blobs_single(ids):
    for i in ids:
        yield subprocess.run(["git", "-C", repo, "cat-file", "blob", i], stdout=subprocess.PIPE, check=True).stdout


def blobs_batch(ids):
    p = subprocess.Popen(["git", "-C", repo, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for i in ids:
        p.stdin.write(i.encode() + b"\n")
        p.stdin.flush()
        size = int(p.stdout.readline().split()[2])
        yield p.stdout.read(size)
        p.stdout.read(1)
    p.stdin.close()
    p.wait()


tree = subprocess.run(["git", "-C", repo, "ls-tree", "-r", "main"], stdout=subprocess.PIPE, check=True, text=True).stdout
ids = [line.split()[2] for line in tree.splitlines()]
words, hits = Counter(), 0
for text in (blobs_batch if batch else blobs_single)(ids):
    words.update(text.split())
    hits += len(PHRASE.findall(text))
print(len(ids), hits, words[b"software"], sum(words.values()))
