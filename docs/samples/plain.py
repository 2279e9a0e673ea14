"""Prints 2,000 INSERT statements, each its own transaction; with the argument `one`, all in one transaction."""

import sys

print("CREATE TABLE t (k INTEGER PRIMARY KEY, name TEXT);")
one = "one" in sys.argv
print("BEGIN;" if one else "")
for number in range(2000):
    print(f"INSERT INTO t VALUES ({number}, 'name of {number}');")
print("COMMIT;" if one else "")
