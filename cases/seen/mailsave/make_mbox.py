#!/usr/bin/env python3
"""Makes an mbox as a scanner fills it: each message carries one small attachment."""
import base64
import os
import random
import sys

COUNT = 2500
NAMES = ["scan.pdf"] * 7 + ["invoice.pdf"] * 2 + ["image001.png"]

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = random.Random(77)
with open(os.path.join(out, "inbox.mbox"), "w") as f:
    for i in range(COUNT):
        name = rng.choice(NAMES)
        body = base64.encodebytes(rng.randbytes(rng.randrange(400, 2400))).decode()
        f.write(
            "From scanner@office Mon Mar  4 08:00:00 2024\n"
            f"Message-ID: <{i}@scanner.office>\n"
            "Subject: Scan to mail\n"
            'Content-Type: application/octet-stream; name="%s"\n'
            "Content-Transfer-Encoding: base64\n"
            'Content-Disposition: attachment; filename="%s"\n\n%s\n' % (name, name, body)
        )
