#!/usr/bin/env python3
"""Statement workers: render every job of the spool, oldest first, with several worker processes.

A worker owns a job once it has made claims/NAME (O_EXCL), so workers may be
started and stopped at any time, and on several machines that share the spool.

usage: statementd.py SPOOL CLAIMS OUT
"""
import hashlib
import json
import multiprocessing
import os
import sys

WORKERS = 3


def pending(spool, claims):
    """The jobs that nobody has claimed yet, oldest first."""
    jobs = []
    with os.scandir(spool) as entries:
        for entry in entries:
            if not entry.name.endswith(".job"):
                continue
            if os.path.exists(os.path.join(claims, entry.name)):
                continue
            jobs.append((entry.stat().st_mtime, entry.name))
    jobs.sort()
    return [name for _, name in jobs]


def try_claim(claims, name):
    try:
        fd = os.open(os.path.join(claims, name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    os.write(fd, b"%d\n" % os.getpid())
    os.close(fd)
    return True


def claimed_jobs(spool, claims):
    """Claims one job after another until the spool has none left."""
    while True:
        for name in pending(spool, claims):
            if try_claim(claims, name):
                yield name
                break
        else:
            return


def render(job):
    lines = [f"Account {job['account']}", ""]
    total = 0
    for line in job["lines"]:
        total += line["cents"]
        lines.append(f"{line['item']:<20}{line['cents'] / 100:>12.2f}")
    lines += ["-" * 32, f"{'Total':<20}{total / 100:>12.2f}", ""]
    return "\n".join(lines).encode(), total


def worker(spool, claims, out, number, results):
    done = cents = digest = 0
    with open(os.path.join(out, f"statements-{number}.txt"), "wb") as statements:
        for name in claimed_jobs(spool, claims):
            with open(os.path.join(spool, name)) as f:
                job = json.load(f)
            page, total = render(job)
            statements.write(page)
            done += 1
            cents += total
            digest ^= int.from_bytes(hashlib.sha256(page).digest()[:8], "big")
    results.put((done, cents, digest))


def main():
    spool, claims, out = sys.argv[1:4]
    os.makedirs(claims, exist_ok=True)
    os.makedirs(out, exist_ok=True)
    results = multiprocessing.SimpleQueue()
    workers = [
        multiprocessing.Process(target=worker, args=(spool, claims, out, n, results)) for n in range(WORKERS)
    ]
    for w in workers:
        w.start()
    done = cents = digest = 0
    for _ in workers:
        d, c, h = results.get()
        done, cents, digest = done + d, cents + c, digest ^ h
    for w in workers:
        w.join()
    print(f"statements {done} cents {cents} digest {digest:016x}")


if __name__ == "__main__":
    main()
