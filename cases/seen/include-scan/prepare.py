import os, random, sys
d = sys.argv[1]
rnd = random.Random(6)
os.makedirs(d + "/src", exist_ok=True)
heads = []
for i in range(48):
    os.makedirs(f"{d}/inc/mod{i:02d}/include/public", exist_ok=True)
for k in range(300):
    i = rnd.randrange(48)
    n = f"part{k}_api.h"
    heads.append(n)
    with open(f"{d}/inc/mod{i:02d}/include/public/{n}", "w") as f:
        f.write(f"#pragma once\nint part{k}(int);\n" * 20)
for s in range(1200):
    with open(f"{d}/src/unit{s}.cc", "w") as f:
        for n in rnd.sample(heads, 22):
            f.write(f"#include \"{n}\"\n")
        for j in range(700):
            f.write(f"static int v{s}_{j} = part{(s + j) % 300}({j}) + {s};\n")
