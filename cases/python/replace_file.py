"""Keeps a cursor in a file: replace_file.py truncate|rename|keep FOLDER."""
import os
import sys

CHANGES = 4000

how, folder = sys.argv[1:]
path = os.path.join(folder, "cursor")
with open(path, "w") as file:
    file.write("%059d\n" % 0)
kept = os.open(path, os.O_WRONLY)
for n in range(CHANGES):
    line = b"%059d\n" % n
    if how == "keep":
        os.pwrite(kept, line, 0)
        continue
    name = path if how == "truncate" else path + ".new"
    with open(name, "wb") as file:
        file.write(line)
    if how == "rename":
        os.rename(name, path)
with open(path) as file:
    print(file.read(), end="")
