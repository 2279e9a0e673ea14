"""Writes the variants of a cohort as VCF text, sorted by chromosome and position."""
import random, sys

rng = random.Random(4)
contigs = [f"chr{n}" for n in range(1, 23)] + ["chrX", "chrY"]
info = [f"AC={rng.randrange(1, 90)};AN=120;DP={rng.randrange(400, 3000)};MQ={rng.uniform(40, 60):.2f};"
        f"FS={rng.uniform(0, 9):.3f};SOR={rng.uniform(0, 3):.3f}" for _ in range(500)]
calls = ["\t".join(rng.choices(["0/0:30", "0/1:42", "1/1:28", "./.:0"], [70, 18, 8, 4], k=40)) for _ in range(300)]
with open(sys.argv[1], "w") as f:
    f.write("##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
            + "\t".join(f"S{n:02d}" for n in range(40)) + "\n")
    for k, contig in enumerate(contigs):
        pos = 10_000
        for _ in range(int(60_000 / (k + 6))):
            pos += rng.randrange(1, 4000)
            ref = rng.choice("ACGT")
            alt = rng.choice([b for b in "ACGT" if b != ref])
            f.write(f"{contig}\t{pos}\t.\t{ref}\t{alt}\t{rng.randrange(10, 999)}\t{rng.choice(['PASS', 'PASS', 'PASS', 'LowQual'])}"
                    f"\t{rng.choice(info)}\tGT:DP\t{rng.choice(calls)}\n")
