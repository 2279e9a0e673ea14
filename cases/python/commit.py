"""Inserts rows into an SQLite data base: `each` commits every row, `all` commits once."""
import sqlite3
import sys

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
base = sqlite3.connect(path, isolation_level=None)
base.execute("create table t (number integer, word text)")
if how == "all":
    base.execute("begin")
for number in range(count):
    base.execute("insert into t values (?, ?)", (number, "word"))
if how == "all":
    base.execute("commit")
print(base.execute("select count(*) from t").fetchone()[0])
