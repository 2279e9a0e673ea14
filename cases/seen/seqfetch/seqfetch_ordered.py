#!/usr/bin/env python3
"""seqfetch: prints the sequences of the regions of a BED file, from an indexed (gzipped) FASTA.

    seqfetch.py genome.fa.gz peaks.bed
"""
import argparse
import gzip
import sys
from typing import NamedTuple


class Contig(NamedTuple):
    length: int
    offset: int
    bases: int
    width: int


class Region(NamedTuple):
    chrom: str
    start: int
    end: int
    name: str


def read_index(path):
    index = {}
    with open(path) as f:
        for line in f:
            name, *numbers = line.rstrip("\n").split("\t")
            index[name] = Contig(*map(int, numbers))
    return index


def read_bed(path):
    regions = []
    with open(path) as f:
        for line in f:
            if not line.strip() or line.startswith(("#", "track", "browser")):
                continue
            chrom, start, end, *rest = line.rstrip("\n").split("\t")
            regions.append(Region(chrom, int(start), int(end), rest[0] if rest else "."))
    return regions


class Fasta:
    """A FASTA file with a .fai index beside it; plain or gzipped."""

    def __init__(self, path):
        self.index = read_index(path + ".fai")
        self.file = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")

    def position(self, chrom, base):
        c = self.index[chrom]
        return c.offset + base // c.bases * c.width + base % c.bases

    def fetch(self, region):
        first = self.position(region.chrom, region.start)
        last = self.position(region.chrom, region.end)
        self.file.seek(first)
        return self.file.read(last - first).replace(b"\n", b"").decode("ascii")

    def close(self):
        self.file.close()


def gc_percent(seq):
    return 100.0 * (seq.count("G") + seq.count("C")) / max(1, len(seq))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("fasta")
    ap.add_argument("bed")
    args = ap.parse_args()

    fasta = Fasta(args.fasta)
    regions = read_bed(args.bed)
    for region in regions:
        if region.chrom not in fasta.index:
            sys.exit(f"seqfetch: no contig {region.chrom} in {args.fasta}")
    # Fetched in the order of the file, so that a gzipped one is gone through once only.
    by_offset = sorted(range(len(regions)), key=lambda i: fasta.position(regions[i].chrom, regions[i].start))
    seqs = {i: fasta.fetch(regions[i]) for i in by_offset}
    for i, region in enumerate(regions):
        seq = seqs[i]
        print(f">{region.name} {region.chrom}:{region.start}-{region.end} gc={gc_percent(seq):.1f}")
        print(seq)
    fasta.close()


if __name__ == "__main__":
    main()
