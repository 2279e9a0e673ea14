"""A package database of 2600 installed packages and a list of 60 upgrades."""
import os, random, sys
d = sys.argv[1]
os.makedirs(f"{d}/var", exist_ok=True)
r = random.Random(99)
names = [f"{r.choice(['lib', 'python3-', 'node-', '', 'gir1.2-'])}{r.choice(['foo','net','xml','ssl','audio','gtk','json'])}{i}" for i in range(2600)]
vers = {}
with open(f"{d}/var/status", "w") as f:
    for n in names:
        vers[n] = f"{r.randrange(1, 9)}.{r.randrange(30)}-{r.randrange(1, 5)}"
        deps = ", ".join(r.sample(names, r.randrange(2, 9)))
        conf = "".join(f" /etc/{n}/{k}.conf {r.getrandbits(128):032x}\n" for k in range(r.randrange(0, 6)))
        desc = "".join(" " + " ".join(r.choices(["shared", "library", "for", "fast", "access", "to", "documents"], k=11)) + "\n" for _ in range(r.randrange(3, 14)))
        f.write(f"Package: {n}\nStatus: install ok installed\nVersion: {vers[n]}\nArchitecture: amd64\nDepends: {deps}\n"
                + (f"Conffiles:\n{conf}" if conf else "") + f"Description: {n}\n{desc}\n")
with open(f"{d}/var/upgrades", "w") as f:
    for n in r.sample(names, 60):
        f.write(f"{n} {vers[n]}+deb12u1\n")
