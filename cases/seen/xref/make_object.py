#!/usr/bin/python3
"""Writes a big relocatable ELF64 object, like the output of `ld -r` over a C++ library."""
import random, struct, sys

path, nsym, nrel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(77)
words = ("Pass Manager Function Module Builder Value Type Loop Info Analysis Block Inst Visitor Graph Node "
         "Cache Reader Writer Scope Symbol Table Region Lower Target Machine Register Alloc Spill Live").split()
ident = lambda k: "".join(rng.choice(words) for _ in range(k))
enc = lambda s: "%d%s" % (len(s), s)
args = ["iRKS0_", "PKcjRKSt6vectorIiSaIiEE", "RKSt3mapIiPKcSt4lessIiESaISt4pairIKiS2_EEE", "RKSt6vectorIPKcSaIS3_EEbm", "PS0_jPFviE"]
strtab = bytearray(b"\0")
symtab = bytearray(24)
for i in range(1, nsym):
    name = "_ZN%s%s%sE%s" % (enc("opt"), enc(ident(2)), enc(ident(2) + str(i)), rng.choice(args))
    symtab += struct.pack("<IBBHQQ", len(strtab), 0x12, 0, 1, i * 64, rng.randrange(16, 900))
    strtab += name.encode() + b"\0"
rela = bytearray()
for i in range(nrel):
    s = min(nsym - 1, 1 + int(nsym * rng.random() ** 2))
    rela += struct.pack("<QQq", i * 12, s << 32 | rng.choice((2, 4, 4, 4)), -4)
text = bytes(nsym * 64)
shstr = b"\0.text\0.rela.text\0.symtab\0.strtab\0.shstrtab\0"
pos = 64
def place(n):
    global pos
    at = pos; pos = (pos + n + 15) // 16 * 16
    return at
bodies = [text, bytes(rela), bytes(symtab), bytes(strtab), shstr]
offs = [place(len(b)) for b in bodies]
n = lambda s: shstr.index(b"\0" + s + b"\0") + 1
sec = lambda name, ty, fl, off, size, link, info, al, ent: struct.pack("<IIQQQQIIQQ", name, ty, fl, 0, off, size, link, info, al, ent)
sh = bytes(64)
sh += sec(n(b".text"), 1, 6, offs[0], len(text), 0, 0, 16, 0)
sh += sec(n(b".rela.text"), 4, 0, offs[1], len(rela), 3, 1, 8, 24)
sh += sec(n(b".symtab"), 2, 0, offs[2], len(symtab), 4, 1, 8, 24)
sh += sec(n(b".strtab"), 3, 0, offs[3], len(strtab), 0, 0, 1, 0)
sh += sec(n(b".shstrtab"), 3, 0, offs[4], len(shstr), 0, 0, 1, 0)
with open(path, "wb") as f:
    f.write(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, pos, 0, 64, 0, 0, 64, 6, 5))
    for o, b in zip(offs, bodies):
        f.seek(o); f.write(b)
    f.seek(pos); f.write(sh)
