#!/bin/sh
# Fetches the wanted attachments from the archive, for a court's request.
set -e
cd "$1"
tar --extract --to-stdout --file=attachments.tar --files-from=wanted.txt > fetched.bin
cksum fetched.bin
