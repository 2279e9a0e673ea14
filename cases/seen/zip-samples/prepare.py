import random, sys, zipfile
rnd = random.Random(15)
blob = rnd.randbytes(1 << 20)
with zipfile.ZipFile(sys.argv[1] + "/train.zip", "w", zipfile.ZIP_STORED) as z:
    for i in range(3000):
        o = rnd.randrange(900000)
        z.writestr(f"class{i % 10}/sample_{i:06d}.u8", blob[o:o + 22000])
