import csv, os, random, sys

CUSTOMERS = 14000
d = sys.argv[1]
os.makedirs(d, exist_ok=True)
r = random.Random(145)
first = "Ada Ben Cleo Dan Eva Finn Gita Hugo Ines Jon Kim Lea Max Nora Otto Pia".split()
last = "Adler Brandt Costa Dietz Engel Funk Graf Hahn Ilg Jung Kern Lang Moser Nagel".split()
with open(os.path.join(d, "customers.csv"), "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["id", "name", "city", "due_cents"])
    for i in range(CUSTOMERS):
        w.writerow([i, r.choice(first) + " " + r.choice(last), "City%d" % r.randrange(400), r.randrange(100, 90000)])
