import os, random, sys

PHOTOS = 260
d = sys.argv[1]
os.makedirs(os.path.join(d, "photos"), exist_ok=True)
r = random.Random(234)
for i in range(PHOTOS):
    name = "2023%02d%02d_IMG%04d.jpg" % (r.randrange(1, 13), r.randrange(1, 29), i)
    with open(os.path.join(d, "photos", name), "wb") as f:
        f.write(r.randbytes(r.randrange(8000, 60000)))
os.sync()
