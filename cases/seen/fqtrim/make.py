"""Writes a FASTQ file of short reads with falling quality."""
import random, sys

rng = random.Random(5)
genome = "".join(rng.choices("ACGT", k=400_000))
quals = []
for _ in range(400):
    drop = rng.randint(25, 100)
    quals.append("".join(chr(33 + max(2, min(40, int(38 - max(0, i - drop) * 1.4 + rng.gauss(0, 2))))) for i in range(100)))
with open(sys.argv[1], "w") as f:
    for n in range(300_000):
        at = rng.randrange(len(genome) - 100)
        f.write(f"@RUN7:1:{1100 + n % 16}:{n} 1:N:0\n{genome[at:at + 100]}\n+\n{quals[rng.randrange(400)]}\n")
