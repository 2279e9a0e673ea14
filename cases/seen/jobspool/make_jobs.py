"""Write a list of jobs, one JSON object a line."""
import json
import random
import sys

out, count = sys.argv[1], int(sys.argv[2])
rng = random.Random(21)
kinds = ["thumbnail", "invoice", "mail", "digest"]
with open(out, "w") as f:
    for i in range(count):
        job = {"kind": rng.choice(kinds), "customer": rng.randint(1, 500),
               "items": [rng.randint(1, 9999) for _ in range(rng.randint(3, 40))]}
        f.write(json.dumps(job) + "\n")
