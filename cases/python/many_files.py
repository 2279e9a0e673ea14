"""Stores small results: `many` in a file each, `one` one after the other in one file."""
import os
import sys

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
result = b"x" * 300
if how == "many":
    for number in range(count):
        with open(os.path.join(path, f"r{number}"), "wb") as out:
            out.write(result)
else:
    with open(os.path.join(path, "all"), "wb") as out:
        for number in range(count):
            out.write(result)
print(count)
