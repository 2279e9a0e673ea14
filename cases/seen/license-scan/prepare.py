import random, subprocess, sys
repo = sys.argv[1] + "/repo"
rnd = random.Random(9)
words = "the software is provided as without warranty of any kind express permission copy modify granted return value int static const char if while".split()
subprocess.run(["git", "init", "-q", repo], check=True)
p = subprocess.Popen(["git", "-C", repo, "fast-import", "--quiet", "--force"], stdin=subprocess.PIPE)
w = p.stdin.write
w(b"commit refs/heads/main\ncommitter a <a@example.org> 1700000000 +0000\ndata 1\nx\n")
for i in range(210):
    body = "\n".join(" ".join(rnd.choices(words, k=11)) for _ in range(880)).encode()
    w(f"M 100644 inline dir{i % 20}/f{i}.c\ndata {len(body)}\n".encode() + body + b"\n")
p.stdin.close()
assert p.wait() == 0
