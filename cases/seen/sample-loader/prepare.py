"""Training samples, both as one file each and packed in a shard."""
import os, random, struct, sys

SAMPLES = 7000
d = sys.argv[1]
r = random.Random(112)
for c in range(50):
    os.makedirs(os.path.join(d, "samples", "class%02d" % c), exist_ok=True)
names = []
with open(os.path.join(d, "samples.shard"), "wb") as shard:
    for i in range(SAMPLES):
        body = r.randbytes(r.randrange(1500, 4000))
        name = "class%02d/%05d.raw" % (r.randrange(50), i)
        with open(os.path.join(d, "samples", name), "wb") as f:
            f.write(body)
        shard.write(struct.pack("<I", len(body)) + body)
        names.append(name)
with open(os.path.join(d, "epoch.txt"), "w") as f:
    f.write("\n".join(names) + "\n")
os.sync()
