"""Write a text collection: batch files, each with one document a line."""
import os
import random
import sys

out, batches, docs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.makedirs(out, exist_ok=True)
rng = random.Random(11)
syll = ["ka", "re", "mo", "ti", "lu", "sen", "dor", "vi", "pa", "nex", "gul", "ber", "ist", "on", "qua"]
vocab = sorted({"".join(rng.choice(syll) for _ in range(rng.randint(2, 5))) for _ in range(40000)})
rng.shuffle(vocab)
for b in range(batches):
    with open(f"{out}/batch-{b:04}.txt", "w") as f:
        for _ in range(docs):
            words = (vocab[int(len(vocab) * rng.random() ** 3)] for _ in range(60))
            f.write(" ".join(words) + "\n")
