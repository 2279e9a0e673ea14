"""Shows the last line of a log that grows: poll_log.py LOG POLLS whole|news."""
import sys

path, polls, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
line = b"2026-11-26 12:00:00 INFO request served in 12 ms, 2048 bytes sent to 192.0.2.7\n"
seen = position = 0
with open(path, "ab") as log:
    log.write(line * 200_000)
    for poll in range(polls):
        log.write(line * 20 + line.replace(b"INFO", b"ERROR"))
        log.flush()
        with open(path, "rb") as reader:
            if mode == "news":
                reader.seek(position)
            while block := reader.read(1 << 18):
                last = block
            position = reader.tell()
        seen += last.rstrip().rpartition(b"\n")[2].count(b"ERROR")
print(seen)
