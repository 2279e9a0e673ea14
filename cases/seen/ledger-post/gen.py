"""Make the day's posting batch (CSV, as the POS gateway sends it) a chart of accounts and the entries carried forward."""
import csv, os, random, sys
d = sys.argv[1]
os.makedirs(f"{d}/in", exist_ok=True)
r = random.Random(20240531)
kinds = [("1", "asset"), ("2", "liability"), ("4", "revenue"), ("5", "expense")]
accounts = [(f"{k}{n:03d}", f"{name} {n}") for k, name in kinds for n in range(100, 160)]
with open(f"{d}/in/accounts.csv", "w", newline="") as f:
    csv.writer(f).writerows(accounts)
nums = [a for a, _ in accounts]
with open(f"{d}/in/carried.csv", "w", newline="") as f:     # January to April, already balanced
    w = csv.writer(f)
    for v in range(-25000, 0):
        a, b = r.sample(nums, 2)
        c = r.randrange(100, 900000)
        w.writerow([v, a, c])
        w.writerow([v, b, -c])
with open(f"{d}/in/postings.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["date", "voucher", "debit", "credit", "amount", "text"])
    for i in range(200):
        a, b = r.sample(nums, 2)
        if r.random() < 0.01:
            b = "9999"                       # unknown account: goes to the reject list
        w.writerow([f"2024-05-{1 + i * 31 // 200:02d}", f"V{100000 + i}", a, b,
                    f"{r.lognormvariate(5, 1.2):.2f}", r.choice(["card sale", "invoice", "refund", "payroll", "rent"])])
