"""A file of 256-byte account records and a day's end balances to store."""
import os, random, struct, sys

ACCOUNTS = 1000000       # 256 MB
UPDATES = 20000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(223)
with open(os.path.join(d, "accounts.dat"), "wb") as f:
    for _ in range(ACCOUNTS // 4000):
        f.write(r.randbytes(256 * 4000))
    f.flush()
    os.fsync(f.fileno())
with open(os.path.join(d, "balances.bin"), "wb") as f:
    for _ in range(UPDATES):
        f.write(struct.pack("<Qq", r.randrange(ACCOUNTS), r.randrange(-10 ** 6, 10 ** 9)))
os.sync()
