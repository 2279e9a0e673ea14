"""Four gzip'ed access logs (one a front-end), as logrotate leaves them."""
import gzip, os, random, sys
d = sys.argv[1]
os.makedirs(f"{d}/logs", exist_ok=True)
r = random.Random(70)
agents = ["Mozilla/5.0 (X11; Linux x86_64) Firefox/123.0", "Mozilla/5.0 (Windows NT 10.0) Chrome/122.0", "curl/8.5.0", "Googlebot/2.1 (+http://www.google.com/bot.html)"]
paths = [f"/{a}/{b}" for a in ("product", "cart", "search", "help", "account", "api/v1/stock") for b in range(60)]
for k in range(4):
    with gzip.open(f"{d}/logs/web{k}.log.gz", "wt", compresslevel=4) as f:
        t = 0.0
        for i in range(80000):
            t += r.expovariate(5)
            s = int(t) % 86400
            f.write('10.%d.%d.%d - - [12/Mar/2024:%02d:%02d:%02d +0000] "GET %s?id=%d HTTP/1.1" %d %d "-" "%s"\n' % (
                k, r.randrange(12), r.randrange(256), s // 3600, s // 60 % 60, s % 60, r.choice(paths), r.randrange(10**6),
                r.choices((200, 302, 404, 500), (88, 7, 4, 1))[0], r.randrange(300, 90000), r.choices(agents, (5, 6, 1, 1))[0]))
