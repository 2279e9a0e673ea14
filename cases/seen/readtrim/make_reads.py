"""Write sequencing reads as FASTQ: 24 samples mixed, a barcode of 8 bases first."""
import os
import random
import sys

out, count = sys.argv[1], int(sys.argv[2])
os.makedirs(os.path.dirname(out), exist_ok=True)
rng = random.Random(9)
bars = ["".join(rng.choice("ACGT") for _ in range(8)) for _ in range(24)]
to_base = bytes(b"ACGT"[v & 3] for v in range(256))
to_qual = bytes(33 + min(40, 8 + v // 5) for v in range(256))
pool = [rng.randbytes(142) for _ in range(4000)]
with open(out, "w", buffering=1 << 20) as f:
    for i in range(count):
        seq = rng.choice(bars) + rng.choice(pool).translate(to_base).decode()
        cut = rng.randint(30, 150)
        qual = (b"I" * 8 + rng.choice(pool).translate(to_qual)).decode()[:cut].ljust(150, "#")
        f.write(f"@run7:{i // 1000}:{i} 1:N:0\n{seq}\n+\n{qual}\n")
with open(os.path.join(os.path.dirname(out), "barcodes.txt"), "w") as f:
    f.write("\n".join(bars) + "\n")
