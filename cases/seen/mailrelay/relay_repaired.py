"""A relay's outgoing queue: one file per message, due at the file's mtime.

usage: relay.py MBOX SPOOL

Messages of MBOX are queued in SPOOL; then the queue is run until it is empty.
As in other mail systems the modification time of a queue file says when the
message is next to be tried, so that the queue survives a restart without an
index of its own.
"""
import email
import hashlib
import heapq
import os
import sys

RETRY_AFTER = 900
EPOCH = 1767636000


def messages(path):
    lines = []
    with open(path, encoding="utf-8") as mbox:
        for line in mbox:
            if line.startswith("From "):
                if lines:
                    yield "".join(lines)
                lines = []
            else:
                lines.append(line)
    if lines:
        yield "".join(lines)


class Queue:
    def __init__(self, spool):
        self.spool = spool
        self.due = []
        os.makedirs(spool, exist_ok=True)

    def submit(self, number, text):
        # Bulk mail of one sender is spread over an hour.
        name = "%08X" % (number * 2654435761 % 2**32)
        path = os.path.join(self.spool, name)
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            f.write(text)
        due = EPOCH + number * 7919 % 3600
        os.utime(path + ".tmp", (due, due))
        os.rename(path + ".tmp", path)

    def scan(self):
        with os.scandir(self.spool) as entries:
            for entry in entries:
                if entry.name.endswith(".tmp"):
                    continue
                self.due.append((int(entry.stat().st_mtime), entry.name))
        heapq.heapify(self.due)

    def next(self):
        """The message that is due first, or None; looks for new mail when the known is done."""
        if not self.due:
            self.scan()
        return heapq.heappop(self.due) if self.due else None

    def read(self, name):
        with open(os.path.join(self.spool, name), encoding="utf-8") as f:
            return email.message_from_string(f.read())

    def done(self, name):
        os.unlink(os.path.join(self.spool, name))

    def defer(self, name, until):
        os.utime(os.path.join(self.spool, name), (until, until))
        heapq.heappush(self.due, (until, name))

def sign(message):
    """A DKIM-like signature: relaxed headers and body, hashed."""
    body = "\r\n".join(" ".join(line.split()) for line in message.get_payload().splitlines())
    digest = hashlib.sha256(body.encode()).hexdigest()
    headers = "\r\n".join(
        "%s:%s" % (name.lower(), " ".join(message[name].split())) for name in ("From", "To", "Subject", "Message-ID")
    )
    key = hashlib.pbkdf2_hmac("sha256", (headers + digest).encode(), b"selector1", 1000)
    return key.hex()


class Transport:
    """Stands in for SMTP: some hosts greylist a message that they see first."""

    def __init__(self):
        self.seen = set()
        self.log = hashlib.sha256()
        self.count = {}

    def deliver(self, message, when):
        host = message["To"].rpartition("@")[2]
        ident = message["Message-ID"]
        if host == "post.example.net" and ident not in self.seen:
            self.seen.add(ident)
            return False
        self.log.update(("%d %s %s\n" % (when, ident, sign(message))).encode())
        self.count[host] = self.count.get(host, 0) + 1
        return True


def main():
    mbox, spool = sys.argv[1:]
    queue = Queue(spool)
    for number, text in enumerate(messages(mbox)):
        queue.submit(number, text)
    transport = Transport()
    deferred = 0
    while True:
        job = queue.next()
        if job is None:
            break
        due, name = job
        if transport.deliver(queue.read(name), due):
            queue.done(name)
        else:
            deferred += 1
            queue.defer(name, due + RETRY_AFTER)
    for host, n in sorted(transport.count.items()):
        print(host, n)
    print("deferred", deferred, "log", transport.log.hexdigest()[:16])


main()
