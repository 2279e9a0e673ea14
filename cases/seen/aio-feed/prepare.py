import json, random, sys
rnd = random.Random(18)
with open(sys.argv[1] + "/feed.jsonl", "w") as f:
    for i in range(30000):
        f.write(json.dumps({"sku": f"A{i:07d}", "price": rnd.randrange(100, 99999), "stock": rnd.randrange(500), "ean": str(rnd.randrange(10 ** 12, 10 ** 13)), "shop": i % 7}) + "\n")
