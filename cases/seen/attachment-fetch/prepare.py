"""An archive of 5000 attachments, and a list of wanted ones in the archive's order."""
import io, os, random, sys, tarfile

MEMBERS, WANTED = 5000, 120
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(128)
names = ["2024/%02d/att-%05d.pdf" % (1 + i * 12 // MEMBERS, i) for i in range(MEMBERS)]
with tarfile.open(os.path.join(d, "attachments.tar"), "w", format=tarfile.USTAR_FORMAT) as tar:
    for name in names:
        info = tarfile.TarInfo(name)
        info.size = r.randrange(5_000, 60_000)
        info.mtime = 1_700_000_000
        tar.addfile(info, io.BytesIO(r.randbytes(info.size)))
with open(os.path.join(d, "wanted.txt"), "w") as f:
    for i in sorted(r.sample(range(MEMBERS), WANTED)):
        f.write(names[i] + "\n")
