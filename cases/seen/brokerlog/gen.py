"""A recorded morning of publishes: producer, topic, key, body (tab separated)."""
import json
import random
import sys

rng = random.Random(4711)
topics = ["orders", "payments", "shipments", "invoices", "returns"]
with open(sys.argv[1], "w") as out:
    for n in range(1900):
        body = {
            "n": n,
            "customer": rng.randrange(90000),
            "lines": [[rng.randrange(5000), rng.randrange(1, 9)] for _ in range(rng.randrange(2, 30))],
            "total": rng.randrange(100, 90000) / 100,
        }
        out.write("p%d\t%s\tc%05d\t%s\n" % (rng.randrange(12), rng.choice(topics), body["customer"], json.dumps(body)))
