"""Looks for optional files beside the sources: search.py stat|open|list DIR."""
import os
import sys

NAMES = 4000
ROUNDS = 60


def exists(path):
    return os.path.exists(path)


def opens(path):
    try:
        with open(path):
            return True
    except FileNotFoundError:
        return False


mode, folder = sys.argv[1:]
if mode == "list":
    there = set(os.listdir(folder))
found = 0
for _ in range(ROUNDS):
    for n in range(NAMES):
        name = "local-%d.conf" % n
        if mode == "list":
            found += name in there
        else:
            found += (exists if mode == "stat" else opens)(os.path.join(folder, name))
print(found)
