"""Writes lines to a log: `flush` hands each to the kernel, `buffer` when the buffer is full."""
import sys

path, count, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(path, "w") as log:
    for number in range(count):
        log.write("event happened\n")
        if how == "flush":
            log.flush()
print(count)
