"""Writes a capture of metrics as an exporter would send them: ten seconds apart, 25 values a scrape."""
import json, random, sys

rng = random.Random(3)
hosts = ["web1", "web2", "db1", "queue1", "cache1"]
names = ["cpu_busy", "load1", "mem_used", "disk_used", "net_in"]
level = {(h, n): rng.uniform(10, 60) for h in hosts for n in names}
with open(sys.argv[1], "w") as f:
    for tick in range(7):
        for key in level:
            level[key] = max(0.0, min(100.0, level[key] + rng.gauss(0, 4)))
            f.write(json.dumps({"t": 1_700_000_000 + tick * 10, "host": key[0], "metric": key[1],
                                "value": round(level[key], 3)}) + "\n")
