"""Health report: the error rate in the last lines of each host's log."""
import os
import sys

LAST = 150


def tail_stepwise(f, count):
    """Goes back from the end until enough line ends have been seen."""
    f.seek(0, os.SEEK_END)
    size = f.tell()
    back = 1
    seen = 0
    while back < size:
        back += 1
        f.seek(-back, os.SEEK_END)
        if f.read(1) == b"\n":
            seen += 1
            if seen == count:
                break
    return f.read().splitlines()


def tail_blocks(f, count, block=65536):
    f.seek(0, os.SEEK_END)
    position = f.tell()
    data = b""
    while position > 0 and data.count(b"\n") <= count:
        step = min(block, position)
        position -= step
        f.seek(position)
        data = f.read(step) + data
    return data.splitlines()[-count:]


def main():
    mode, folder = sys.argv[1:]
    tail = tail_blocks if mode == "repaired" else tail_stepwise
    errors = lines = slow = 0
    logs = os.path.join(folder, "logs")
    for name in sorted(os.listdir(logs)):
        with open(os.path.join(logs, name), "rb") as f:
            for line in tail(f, LAST):
                words = line.split()
                lines += 1
                errors += words[2] == b"ERROR"
                slow += int(words[-2])
    print(f"{lines} lines, {errors} errors, {slow} ms")


main()
