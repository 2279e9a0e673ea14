"""Makes a document root of a wiki-like site and a log of requests to it."""
import os, random, sys

root = os.path.join(sys.argv[1], "htdocs")
rng = random.Random(11)
words = ["about", "api", "archive", "assets", "blog", "docs", "guides", "img", "intro", "news", "notes", "ref", "team", "v1", "v2"]
folders = set()
while len(folders) < 300:
    depth = rng.randint(4, 8)
    folders.add("/".join(rng.choice(words) for _ in range(depth)))
folders = sorted(folders)
pages = []
for folder in folders:
    os.makedirs(os.path.join(root, folder), exist_ok=True)
    for n in range(6):
        name = f"{folder}/page{n}.html"
        with open(os.path.join(root, name), "w") as f:
            f.write(f"<html><head><title>{name}</title></head><body>\n")
            for _ in range(rng.randint(8, 30)):
                f.write("<p>" + " ".join(rng.choices(words, k=12)) + "</p>\n")
            f.write("</body></html>\n")
        pages.append("/" + name)
with open(os.path.join(root, ".access"), "w") as f:
    f.write("expires 3600\nheader X-Frame-Options DENY\n")
for folder in rng.sample(folders, 12):
    with open(os.path.join(root, folder, ".access"), "w") as f:
        f.write(rng.choice(["deny all\n", "expires 60\n", "header Cache-Control no-store\n"]))
with open(os.path.join(sys.argv[1], "requests.log"), "w") as f:
    for n in range(60_000):
        page = pages[min(int(rng.paretovariate(0.35)), len(pages)) - 1] if rng.random() < 0.5 else rng.choice(pages)
        if rng.random() < 0.02:
            page = page.replace("page", "missing")
        f.write(f"10.0.{n % 7}.{n % 251} GET {page}\n")
