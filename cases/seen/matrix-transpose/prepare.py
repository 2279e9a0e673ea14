import array, os, random, sys

N = 1200
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(178)
with open(os.path.join(d, "matrix.f32"), "wb") as f:
    for _ in range(N):
        f.write(array.array("f", [r.random() for _ in range(N)]).tobytes())
