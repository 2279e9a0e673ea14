#!/usr/bin/env python3
"""Makes a gzipped genome with its .fai index and a BED file of peaks sorted by score."""
import gzip
import os
import random
import sys

CHROMOSOMES, LENGTH, WIDTH = 8, 3_000_000, 60
PEAKS = 40

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(4711)
at = 0
with gzip.open(os.path.join(out, "genome.fa.gz"), "wb", compresslevel=6) as fa, \
        open(os.path.join(out, "genome.fa.gz.fai"), "w") as fai:
    for c in range(1, CHROMOSOMES + 1):
        head = f">chr{c}\n".encode()
        fa.write(head)
        at += len(head)
        fai.write(f"chr{c}\t{LENGTH}\t{at}\t{WIDTH}\t{WIDTH + 1}\n")
        bases = bytes(b"ACGT"[b & 3] for b in rng.randbytes(LENGTH))
        text = b"".join(bases[i:i + WIDTH] + b"\n" for i in range(0, LENGTH, WIDTH))
        fa.write(text)
        at += len(text)

with open(os.path.join(out, "peaks.bed"), "w") as bed:
    for n in range(PEAKS):
        start = rng.randrange(LENGTH - 600)
        bed.write(f"chr{rng.randint(1, CHROMOSOMES)}\t{start}\t{start + rng.randint(150, 600)}\tpeak{n}\t{1000 - n}\n")
