#!/usr/bin/env python3
"""Run an upgrade list through the package database, crash-safely.

Each package goes installed -> half-installed -> unpacked -> installed; every step has to be
on disk before the next one starts, so that an interrupted run can be taken up again.
"""
import argparse, hashlib, os, re


def load(path):
    with open(path) as f:
        stanzas = f.read().split("\n\n")
    return {s.split("\n", 1)[0][9:]: s for s in stanzas if s.startswith("Package: ")}


def write_all(path, db):
    tmp = path + "-new"
    with open(tmp, "w") as f:
        f.write("\n\n".join(db.values()) + "\n\n")
        f.flush()
        os.fsync(f.fileno())
    os.rename(tmp, path)


class StatusFile:
    """Keeps the status file itself current."""

    def __init__(self, path, db):
        self.path, self.db = path, db

    def record(self, name):
        write_all(self.path, self.db)

    def close(self):
        pass


class Journal:
    """Appends changed stanzas to STATUS-updates; the status file is written at the end."""

    def __init__(self, path, db):
        self.path, self.db = path, db
        self.log = open(path + "-updates", "w")

    def record(self, name):
        self.log.write(self.db[name] + "\n\n")
        self.log.flush()
        os.fdatasync(self.log.fileno())

    def close(self):
        write_all(self.path, self.db)
        self.log.close()
        os.unlink(self.path + "-updates")


def set_state(db, name, state, version=None):
    s = re.sub(r"^Status: .*$", f"Status: install ok {state}", db[name], count=1, flags=re.M)
    if version:
        s = re.sub(r"^Version: .*$", f"Version: {version}", s, count=1, flags=re.M)
    db[name] = s


def main():
    p = argparse.ArgumentParser()
    p.add_argument("status"), p.add_argument("upgrades"), p.add_argument("out")
    p.add_argument("--journal", action="store_true")
    a = p.parse_args()
    db = load(a.status)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.out, "status")
    write_all(path, db)
    store = (Journal if a.journal else StatusFile)(path, db)
    done = broken = 0
    for line in open(a.upgrades):
        name, version = line.split()
        deps = re.search(r"^Depends: (.*)$", db[name], re.M).group(1).split(", ")
        if any(d not in db for d in deps):
            broken += 1
            continue
        for state, v in (("half-installed", None), ("unpacked", version), ("installed", None)):
            set_state(db, name, state, v)
            store.record(name)
        done += 1
    store.close()
    with open(path, "rb") as f:
        data = f.read()
    print(f"{done} upgraded, {broken} held back, {len(db)} packages, status {len(data)} bytes {hashlib.sha1(data).hexdigest()}")


if __name__ == "__main__":
    main()
