#!/usr/bin/env python3
"""Post a day's voucher file into the general ledger (double entry, SQLite)."""
import argparse, csv, hashlib, os, sqlite3
from decimal import Decimal

SCHEMA = """
create table if not exists account(no text primary key, name text, balance integer not null default 0);
create table if not exists voucher(id integer primary key, ref text unique, date text, text text);
create table if not exists entry(voucher integer references voucher, account text references account,
                                 amount integer not null);
create index if not exists entry_account on entry(account);
create table if not exists reject(ref text, reason text);
"""


class Rejected(Exception):
    pass


def open_ledger(path, chart, carried):
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(SCHEMA)
    db.execute("begin")
    with open(chart, newline="") as f:
        db.executemany("insert or ignore into account(no, name) values(?, ?)", csv.reader(f))
    with open(carried, newline="") as f:
        db.executemany("insert into entry values(?, ?, ?)", csv.reader(f))
    db.execute("update account set balance = (select coalesce(sum(amount), 0) from entry where account = account.no)")
    db.execute("commit")
    return db


def post(db, row):
    cents = int(Decimal(row["amount"]) * 100)
    cur = db.execute("insert into voucher(ref, date, text) values(?, ?, ?)", (row["voucher"], row["date"], row["text"]))
    for account, amount in ((row["debit"], cents), (row["credit"], -cents)):
        hit = db.execute("update account set balance = balance + ? where no = ?", (amount, account))
        if hit.rowcount != 1:
            raise Rejected(f"no account {account}")
        db.execute("insert into entry values(?, ?, ?)", (cur.lastrowid, account, amount))


def run(db, path, batch):
    """Every voucher is all or nothing; `batch` vouchers share one commit."""
    open_tx = 0
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if not open_tx:
                db.execute("begin immediate")
            db.execute("savepoint v")
            try:
                post(db, row)
            except (Rejected, sqlite3.IntegrityError) as e:
                db.execute("rollback to v")
                db.execute("insert into reject values(?, ?)", (row["voucher"], str(e)))
            db.execute("release v")
            open_tx += 1
            if open_tx == batch:
                db.execute("commit")
                open_tx = 0
    if open_tx:
        db.execute("commit")


def report(db):
    digest = hashlib.sha256()
    for no, bal in db.execute("select no, balance from account order by no"):
        digest.update(f"{no}:{bal};".encode())
    one = lambda q: db.execute(q).fetchone()[0]
    print("vouchers", one("select count(*) from voucher"), "rejected", one("select count(*) from reject"))
    print("sum of entries", one("select sum(amount) from entry"))
    for cls, n in db.execute("select substr(no,1,1), sum(balance) from account group by 1"):
        print("class", cls, n / 100)
    print("trial balance", digest.hexdigest()[:16])


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("db"), p.add_argument("chart"), p.add_argument("carried"), p.add_argument("postings")
    p.add_argument("--batch", type=int, default=1)
    a = p.parse_args()
    db = open_ledger(a.db, a.chart, a.carried)
    run(db, a.postings, a.batch)
    report(db)
