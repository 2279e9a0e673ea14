"""Reads a cached file in pieces of 64 MiB: `fresh` into a new object each time, `into` one buffer that stays."""
import sys

path, rounds, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PIECE = 64 << 20
buffer = bytearray(PIECE)
total = 0
for _ in range(rounds):
    with open(path, "rb", buffering=0) as file:
        if how == "fresh":
            while piece := file.read(PIECE):
                total += piece[0]
                del piece
        else:
            while file.readinto(buffer):
                total += buffer[0]
print(total)
