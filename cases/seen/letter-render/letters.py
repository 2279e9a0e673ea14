"""Renders reminder letters and packs them into one print job."""
import csv
import io
import os
import sys
import tempfile
import zlib

TEXT = """Dear {name},

our records show an open balance of {amount} for your account {id} in
{city}. Please settle it within fourteen days.

Kind regards
Accounts
"""


def render(row, out):
    amount = "%d.%02d" % divmod(int(row["due_cents"]), 100)
    out.write(TEXT.format(name=row["name"], amount=amount, id=row["id"], city=row["city"]))


def letter_via_file(row, scratch):
    """The renderer wants a file, so give it one and read it back."""
    fd, path = tempfile.mkstemp(suffix=".txt", dir=scratch)
    with os.fdopen(fd, "w") as f:
        render(row, f)
    with open(path) as f:
        text = f.read()
    os.unlink(path)
    return text


def letter_in_memory(row, scratch):
    out = io.StringIO()
    render(row, out)
    return out.getvalue()


def main():
    mode, folder = sys.argv[1:]
    letter = letter_in_memory if mode == "repaired" else letter_via_file
    scratch = os.path.join(folder, "scratch")
    os.makedirs(scratch, exist_ok=True)
    n = crc = 0
    with open(os.path.join(folder, "customers.csv"), newline="") as f, \
            open(os.path.join(folder, "printjob.txt"), "w") as job:
        for row in csv.DictReader(f):
            text = letter(row, scratch)
            job.write(text)
            job.write("\f")
            crc = zlib.crc32(text.encode(), crc)
            n += 1
    print(f"{n} letters {crc:08x}")


main()
