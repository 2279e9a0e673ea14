import os, random, sys
d = sys.argv[1]
os.makedirs(f"{d}/in", exist_ok=True)
r = random.Random(606)
texts = ["Pump housing", "Maintenance contract", "Bearing 6204", "Spare part set", "Consulting", "Freight"]
with open(f"{d}/in/invoices.csv", "w") as f:
    f.write("invoice;customer;day;currency;vatclass;net_cents;quantity;text\n")
    for i in range(60000):
        f.write(f"{900000 + i};{r.randrange(10000, 14000)};{r.randrange(19700, 19800)};{r.choices(['EUR', 'USD', 'CHF'], [8, 2, 1])[0]};"
                f"{r.choices('SRZ', [7, 2, 1])[0]};{int(r.lognormvariate(9, 1.3))};{r.randrange(1, 50)};{r.choice(texts)} {r.randrange(1000, 9999)}\n")
