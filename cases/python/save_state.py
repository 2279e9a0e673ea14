"""Keeps the state of 20,000 jobs in a file: save_state.py FOLDER CHANGES whole|journal."""
import os
import sys

JOBS = 20_000

folder, changes, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
path = os.path.join(folder, "jobs")
jobs = [b"job %06d is waiting, no worker has taken it, priority 3\n" % n for n in range(JOBS)]


def save():
    with open(path + ".new", "wb") as file:
        file.write(b"".join(jobs))
    os.replace(path + ".new", path)


save()
with open(path + ".journal", "ab", buffering=0) as journal:
    for n in range(changes):
        job = n * 7919 % JOBS
        jobs[job] = b"job %06d has ended, worker %02d, took 12 s, exit code 0\n" % (job, n % 16)
        if how == "whole":
            save()
        else:
            journal.write(jobs[job])
if how == "journal":
    save()
with open(path, "rb") as file:
    print(sum(line.endswith(b"code 0\n") for line in file))
