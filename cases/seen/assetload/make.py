"""Installs the data of an old game (made on a system that does not care about case) and a level that uses it."""
import os, random, struct, sys

rng = random.Random(77)
root = os.path.join(sys.argv[1], "DATA")
folders = {"Textures": 3500, "Sounds": 1200, "Models": 1500}
stems = ["Wall", "FLOOR", "Door", "crate", "Pipe", "GRATE", "Sky", "Lamp", "Metal", "Brick", "sand", "Rust"]
ends = {"Textures": ".TGA", "Sounds": ".Wav", "Models": ".MD2"}
names = []
for folder, count in folders.items():
    os.makedirs(os.path.join(root, folder), exist_ok=True)
    for n in range(count):
        name = f"{rng.choice(stems)}_{rng.choice(stems)}{n:04d}{ends[folder]}"
        width, height = rng.choice([8, 16, 32]), rng.choice([8, 16, 32])
        with open(os.path.join(root, folder, name), "wb") as f:
            f.write(struct.pack("<2H", width, height) + rng.randbytes(width * height))
        names.append(f"{folder}/{name}")
with open(os.path.join(sys.argv[1], "e1m1.lvl"), "w") as f:
    for n in range(1500):
        name = rng.choice(names).lower()
        f.write(f"entity {n} data/{name} {rng.randint(-999, 999)} {rng.randint(-999, 999)} {rng.randint(0, 99)}\n")
