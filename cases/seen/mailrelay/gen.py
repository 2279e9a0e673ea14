"""An mbox with one evening's outgoing mail."""
import random
import sys

rng = random.Random(25)
words = "order parcel invoice thanks please delivery tomorrow attached regards number account service".split()
hosts = ["example.org", "mail.example.com", "post.example.net", "corp.example"]
with open(sys.argv[1], "w") as out:
    for n in range(600):
        out.write("From sender@example.org Mon Jan  5 18:00:00 2026\n")
        out.write("Message-ID: <%06d.%08x@example.org>\n" % (n, rng.getrandbits(32)))
        out.write("From: Shop %d <shop%d@example.org>\n" % (n % 7, n % 7))
        out.write("To: user%d@%s\n" % (rng.randrange(5000), rng.choice(hosts)))
        out.write("Subject: Your %s %d\n\n" % (rng.choice(words), n))
        for _ in range(rng.randrange(10, 60)):
            out.write(" ".join(rng.choice(words) for _ in range(11)) + "\n")
        out.write("\n")
