"""Runs two commands in turns, seven times each, and prints the medians of their wall times and the gain."""

import statistics
import subprocess
import sys
import time

times = {command: [] for command in sys.argv[1:3]}
for _ in range(7):
    for command, list_of in times.items():
        begun = time.monotonic()
        subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
        list_of.append(time.monotonic() - begun)
for command, list_of in times.items():
    low, high = min(list_of), max(list_of)
    print(f"{statistics.median(list_of):.3f} s ({low:.3f} to {high:.3f})  {command}")
before, after = (statistics.median(list_of) for list_of in times.values())
print(f"gain {before / after:.2f}x: time of the first / time of the second, medians of 7 runs each in turns")
