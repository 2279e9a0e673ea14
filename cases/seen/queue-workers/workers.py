"""Four worker processes take jobs from a queue kept in one JSON file."""
import fcntl
import hashlib
import json
import os
import shutil
import sys

WORKERS = 4


def claim(folder, count):
    """Takes up to `count` new jobs from the queue, exclusively and durably."""
    queue = os.path.join(folder, "queue.json")
    with open(os.path.join(folder, "queue.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(queue) as f:
            jobs = json.load(f)
        mine = [job for job in jobs if job["state"] == "new"][:count]
        if not mine:
            return []
        for job in mine:
            job["state"] = "taken"
        with open(queue + ".new", "w") as f:
            f.write(json.dumps(jobs))
            f.flush()
            os.fsync(f.fileno())
        os.rename(queue + ".new", queue)
        return mine


def work(folder, name, count):
    with open(os.path.join(folder, "results.%d" % name), "w") as out:
        while jobs := claim(folder, count):
            for job in jobs:
                digest = job["payload"].encode()
                for _ in range(100):
                    digest = hashlib.sha256(digest).digest()
                out.write("%d %d\n" % (job["id"], int.from_bytes(digest[:4], "big")))


def main():
    mode, folder = sys.argv[1:]
    count = 20 if mode == "repaired" else 1
    shutil.copy(os.path.join(folder, "queue.start.json"), os.path.join(folder, "queue.json"))
    children = []
    for name in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            work(folder, name, count)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    ids, total = set(), 0
    for name in range(WORKERS):
        with open(os.path.join(folder, "results.%d" % name)) as f:
            for line in f:
                i, value = map(int, line.split())
                ids.add(i)
                total += value
    print(len(ids), total)


main()
