"""Stores telemetry packets as they come in."""
import os
import sqlite3
import sys
import zlib


def main():
    mode, folder = sys.argv[1:]
    db = sqlite3.connect(os.path.join(folder, "telemetry.db"), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    if mode != "repaired":
        db.execute("PRAGMA wal_autocheckpoint = 1")    # keeps the -wal file small
    db.execute("CREATE TABLE packet (vehicle INTEGER, at INTEGER, readings TEXT)")
    db.execute("CREATE TABLE latest (vehicle INTEGER PRIMARY KEY, at INTEGER)")
    with open(os.path.join(folder, "packets.csv")) as packets:
        for line in packets:
            vehicle, at, readings = line.rstrip("\n").split(",")
            db.execute("BEGIN")
            db.execute("INSERT INTO packet VALUES (?, ?, ?)", (vehicle, at, readings))
            db.execute("INSERT OR REPLACE INTO latest VALUES (?, ?)", (vehicle, at))
            db.execute("COMMIT")
    crc = 0
    for row in db.execute("SELECT vehicle, at, readings FROM packet ORDER BY rowid"):
        crc = zlib.crc32(repr(row).encode(), crc)
    count, vehicles = db.execute("SELECT (SELECT count(*) FROM packet), (SELECT count(*) FROM latest)").fetchone()
    db.close()
    print(f"{count} packets of {vehicles} vehicles, crc {crc:08x}")


main()
