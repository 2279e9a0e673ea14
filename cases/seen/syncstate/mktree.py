"""A folder of mail attachments, as a sync client finds at its first run."""
import os
import random
import sys

root = sys.argv[1]
rng = random.Random(77)
words = [rng.randbytes(rng.randrange(3, 9)).hex() for _ in range(4000)]
for a in range(20):
    for b in range(5):
        d = os.path.join(root, f"account-{a:02d}", f"2023-{b + 1:02d}-attachments")
        os.makedirs(d, exist_ok=True)
        for c in range(22):
            with open(os.path.join(d, f"document-{rng.randrange(10**8):08d}-{c:02d}.dat"), "w") as f:
                f.write(" ".join(rng.choices(words, k=rng.randrange(200, 2100))))
