import json, os, random, sys

JOBS = 240
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(156)
jobs = [{"id": i, "kind": r.choice(["resize", "mail", "pdf"]), "state": "new",
         "payload": "%032x" % r.getrandbits(128)} for i in range(JOBS)]
with open(os.path.join(d, "queue.start.json"), "w") as f:
    json.dump(jobs, f)
