"""Writes the library of a feed reader and the events of a sync with the phone."""
import os, random, sys

rng = random.Random(12)
words = "the of linux release disk kernel review new notes on how we built faster search with rust and maps for games".split()
ids = []
with open(os.path.join(sys.argv[1], "library.start"), "w") as f:
    for n in range(6000):
        guid = f"{rng.getrandbits(64):016x}"
        ids.append(guid)
        title = " ".join(rng.choices(words, k=9))
        text = " ".join(rng.choices(words, k=28))
        f.write(f"{guid}\tfeed{rng.randrange(60)}\tnew\t0\t{title}\t{text}\n")
with open(os.path.join(sys.argv[1], "sync.log"), "w") as f:
    for n in range(250):
        f.write(f"{rng.choice(ids)}\t{rng.choice(['read', 'read', 'star', 'unread'])}\t{1_760_000_000 + n * 37}\n")
