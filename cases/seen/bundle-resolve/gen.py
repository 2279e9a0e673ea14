"""A front-end monorepo: apps/web/src/** with imports of relative modules, aliases and packages."""
import json, os, random, sys
root = sys.argv[1] + "/ws"
r = random.Random(8)
W = lambda p, s: (os.makedirs(os.path.dirname(p), exist_ok=True), open(p, "w").write(s))
pkgs = [f"lib-{i:03d}" for i in range(120)]
for p in pkgs:
    main = r.choice(["index.js", "lib/main.js", "dist/bundle.js"])
    W(f"{root}/node_modules/{p}/package.json", json.dumps({"name": p, "version": "1.0.0", "main": main}))
    W(f"{root}/node_modules/{p}/{main}", f"module.exports = '{p}';\n" * r.randrange(2, 40))
mods = []
for i in range(700):
    a = f"feature{i % 25:02d}"
    kind = r.choice(["ui/widgets/parts", "model/store", "api/client/v2", "util"])
    ext = r.choice([".ts", ".tsx", ".js", ".jsx", "/index.ts"])
    mods.append((f"apps/web/src/features/{a}/{kind}", f"m{i:03d}", ext))
for i, (d, n, ext) in enumerate(mods):
    lines = []
    for _ in range(r.randrange(10, 24)):
        if r.random() < 0.55:
            lines.append(f"import {{ x }} from '{r.choice(pkgs)}';")
        else:
            j = r.randrange(len(mods)) if i == 0 else r.randrange(max(0, i - 60), min(len(mods), i + 140))
            td, tn, _ = mods[j]
            here = d + (f"/{n}" if ext.startswith("/") else "")
            rel = os.path.relpath(f"{td}/{tn}", here)
            lines.append(f"import y from '{rel if rel.startswith('.') else './' + rel}';")
    body = "\n".join(lines) + "\n" + "export const x = () => 1;\n" * r.randrange(5, 120)
    W(f"{root}/{d}/{n}{ext}", body)
d, n, ext = mods[0]
W(f"{root}/apps/web/src/main.ts", "\n".join(f"import './{os.path.relpath(x + '/' + y, 'apps/web/src')}';" for x, y, _ in mods[::7]) + "\n")
