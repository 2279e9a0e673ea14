#!/usr/bin/env python3
"""Make a page store (a header, then 4 KiB pages) and the write-ahead log of one busy hour.

usage: mkstore.py DIR DATA_START     makes DIR/pages.db and DIR/pages.wal
"""
import os
import random
import struct
import sys
import zlib

PAGE = 4096
PAGES = 30000
FRAMES = 10000

where, data_start = sys.argv[1], int(sys.argv[2])
os.makedirs(where, exist_ok=True)
rng = random.Random(77)

with open(where + "/pages.db", "wb") as db:
    db.write(struct.pack("<8sIIQ", b"PGSTORE1", PAGE, data_start, PAGES).ljust(data_start, b"\0"))
    for _ in range(PAGES):
        db.write(rng.randbytes(PAGE))
    db.flush()
    os.fsync(db.fileno())

with open(where + "/pages.wal", "wb") as wal:
    for lsn in range(FRAMES):
        page = rng.randbytes(PAGE)
        wal.write(struct.pack("<QQII", lsn, rng.randrange(PAGES), zlib.adler32(page), PAGE))
        wal.write(page)
    wal.flush()
    os.fsync(wal.fileno())
