"""metricsink: stores scraped metrics in an SQLite database and raises alerts.

usage: metricsink.py [--batch] CAPTURE DATABASE

Reads samples as JSON lines, keeps the last and the highest value of each series,
and opens an alert while a moving average is above its limit.
"""
import json
import os
import sqlite3
import sys
from collections import deque

SCHEMA = """
CREATE TABLE sample (t INTEGER, host TEXT, metric TEXT, value REAL);
CREATE INDEX sample_series ON sample (host, metric, t);
CREATE TABLE series (host TEXT, metric TEXT, last REAL, peak REAL, PRIMARY KEY (host, metric)) WITHOUT ROWID;
CREATE TABLE alert (host TEXT, metric TEXT, opened INTEGER, closed INTEGER);
"""
LIMIT = {"cpu_busy": 55, "load1": 50, "mem_used": 60, "disk_used": 58, "net_in": 62}


class Sink:
    def __init__(self, path, batch):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript("BEGIN;" + SCHEMA + "COMMIT;")
        self.batch = batch
        self.tick = None
        self.windows = {}
        self.firing = {}

    def add(self, s):
        if self.batch and s["t"] != self.tick:
            self.commit()
            self.db.execute("BEGIN")
            self.tick = s["t"]
        key = (s["host"], s["metric"])
        self.db.execute("INSERT INTO sample VALUES (?, ?, ?, ?)", (s["t"], *key, s["value"]))
        self.db.execute("INSERT INTO series VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET last = excluded.last, "
                        "peak = max(peak, excluded.peak)", (*key, s["value"], s["value"]))
        window = self.windows.setdefault(key, deque(maxlen=6))
        window.append(s["value"])
        high = sum(window) / len(window) > LIMIT[s["metric"]]
        if high and key not in self.firing:
            self.firing[key] = s["t"]
            self.db.execute("INSERT INTO alert VALUES (?, ?, ?, NULL)", (*key, s["t"]))
        elif not high and key in self.firing:
            self.db.execute("UPDATE alert SET closed = ? WHERE host = ? AND metric = ? AND opened = ?",
                            (s["t"], *key, self.firing.pop(key)))

    def commit(self):
        if self.db.in_transaction:
            self.db.execute("COMMIT")


def report(db):
    for row in db.execute("SELECT metric, count(*), round(avg(value), 3), round(max(value), 3) FROM sample "
                          "GROUP BY metric ORDER BY metric"):
        print("%-10s %5d samples  mean %8.3f  peak %8.3f" % row)
    for row in db.execute("SELECT host, metric, count(*), sum(ifnull(closed, 1700000070) - opened) FROM alert "
                          "GROUP BY host, metric ORDER BY 4 DESC, 1, 2 LIMIT 8"):
        print("alert %-7s %-10s %3d times %5d s" % row)


def main(argv):
    batch = "--batch" in argv
    capture, path = [a for a in argv if not a.startswith("--")]
    if os.path.exists(path):
        os.remove(path)
    sink = Sink(path, batch)
    with open(capture) as lines:
        for line in lines:
            sink.add(json.loads(line))
    sink.commit()
    report(sink.db)
    sink.db.close()


main(sys.argv[1:])
