#!/usr/bin/python3
"""Makes a mailbox of a purchase department: many mails, the same few attachment names again and again."""
import base64, os, random, sys
rnd = random.Random(99)
os.makedirs(sys.argv[1], exist_ok=True)
names = ["image001.png"] * 55 + ["invoice.pdf"] * 30 + ["scan.pdf"] * 10 + ["order.xlsx"] * 5
with open(os.path.join(sys.argv[1], "purchase.mbox"), "w") as f:
    for i in range(1500):
        name = rnd.choice(names)
        body = base64.encodebytes(rnd.randbytes(rnd.randrange(2000, 30000))).decode()
        f.write(f"From supplier{rnd.randrange(400)}@example.net Mon Mar  3 10:00:00 2025\n"
                f"Subject: your order {i}\nContent-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n"
                f"Content-Type: text/plain\n\nPlease find attached.\n--b{i}\n"
                f"Content-Disposition: attachment; filename=\"{name}\"\nContent-Transfer-Encoding: base64\n\n"
                f"{body}\n--b{i}--\n\n")
