#!/bin/sh
# Fetches the wanted attachments from the archive, for a court's request.
set -e
cd "$1"
while read -r name; do
    tar --extract --to-stdout --file=attachments.tar "$name"
done < wanted.txt > fetched.bin
cksum fetched.bin
