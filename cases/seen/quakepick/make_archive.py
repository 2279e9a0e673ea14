#!/usr/bin/env python3
"""Writes a day's archive of 512-byte records (64-byte header, 224 samples of 16 bits) of several stations."""
import array, random, struct, sys
path, records = sys.argv[1], int(sys.argv[2])
rnd = random.Random(9)
quiet = [array.array("h", [int(rnd.gauss(0, 40)) for _ in range(224)]).tobytes() for _ in range(64)]
loud = [array.array("h", [int(rnd.gauss(0, 1500)) for _ in range(224)]).tobytes() for _ in range(16)]
stations = [b"AACH ", b"BFO  ", b"CLL  ", b"GRFO ", b"MOX  ", b"RUE  ", b"TNS  ", b"WET  "]
with open(path, "wb", 1 << 20) as f:
    event = 0
    for i in range(records):
        if event == 0 and rnd.random() < 0.0004:
            event = rnd.randrange(8, 60)
        data = rnd.choice(loud if event else quiet)
        event = max(0, event - 1)
        st = i % len(stations)
        t = (i // len(stations)) * 2.24
        f.write(struct.pack("<6s5s5xdHH36x", b"%06d" % (i % 1000000), stations[st], t, 224, st) + data)
