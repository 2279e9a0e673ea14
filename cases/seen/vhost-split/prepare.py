import random, sys
rnd = random.Random(1)
with open(sys.argv[1] + "/access.log", "w") as f:
    for i in range(260000):
        f.write(f"shop{rnd.randrange(80)}.example.org 10.0.{i % 256}.{i % 251} - - [12/May/2024:{i // 10833:02d}:{i // 180 % 60:02d}:{i % 60:02d}] \"GET /item/{rnd.randrange(99999)} HTTP/1.1\" {200 if i % 9 else 404} {rnd.randrange(50000)}\n")
