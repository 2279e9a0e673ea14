"""Writes 5,000 records of 100 bytes and makes them durable: each record (1), or 100 records at once (100)."""

import os
import sys

batch = int(sys.argv[1])
log = os.open("records.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
for number in range(1, 5001):
    os.write(log, b"%099d\n" % number)
    if number % batch == 0:
        os.fsync(log)
os.close(log)
