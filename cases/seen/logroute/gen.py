"""A front-end's access log of one hour, 48 tenants."""
import os, random, sys
d = sys.argv[1]
os.makedirs(f"{d}/in", exist_ok=True)
r = random.Random(31)
tenants = [f"{w}{n}.example.net" for w in ("shop", "blog", "crm", "api", "cdn", "wiki") for n in range(8)]
weights = [1 / (1 + i) for i in range(len(tenants))]
paths = [f"/{a}/{b}" for a in ("img", "cart", "login", "v1/items", "static", "search") for b in range(40)]
with open(f"{d}/in/access.log", "w") as f:
    t = 0
    for i in range(110000):
        t += r.random() < 0.3
        f.write('%s 10.%d.%d.%d [12/Mar/2024:%02d:%02d:%02d +0000] "GET %s HTTP/1.1" %d %d %.3f\n' % (
            r.choices(tenants, weights)[0], r.randrange(256), r.randrange(256), r.randrange(256),
            9 + t // 3600 % 12, t // 60 % 60, t % 60, r.choice(paths),
            r.choices((200, 304, 404, 500), (90, 6, 3, 1))[0], r.randrange(200, 60000), r.expovariate(8)))
