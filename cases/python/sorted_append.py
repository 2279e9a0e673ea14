"""Sorts numbers and appends them to a file through a buffer."""
import random
import sys

path = sys.argv[1]
draw = random.Random(7)
numbers = sorted(draw.random() for _ in range(600_000))
with open(path, "a") as out:
    for number in numbers:
        out.write(f"{number}\n")
print(len(numbers))
