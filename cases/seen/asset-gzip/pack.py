"""Compresses the bundles of a web build in parallel."""
import subprocess
import sys
import threading

BLOCK = 256 * 1024


def pack(path, sizes):
    with open(path, "rb", buffering=0) as src, open(path + ".gz", "wb") as out:
        p = subprocess.Popen(["gzip", "-9n"], stdin=subprocess.PIPE, stdout=out, bufsize=0)
        view = memoryview(bytearray(BLOCK))
        while n := src.readinto(view):
            at = 0
            while at < n:
                at += p.stdin.write(view[at:n])
        p.stdin.close()
        if p.wait():
            raise SystemExit(path)
        sizes[path] = out.seek(0, 2)


sizes = {}
jobs = [threading.Thread(target=pack, args=(f"{sys.argv[1]}/{n}.js", sizes)) for n in ("app", "vendor")]
for j in jobs:
    j.start()
for j in jobs:
    j.join()
print(sum(sizes.values()))
