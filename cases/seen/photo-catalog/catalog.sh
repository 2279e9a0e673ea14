#!/bin/sh
# Makes a catalogue of the photo folder: day, number and size of each picture.
set -e
catalog=$1/catalog.txt
: > "$catalog"
for photo in "$1"/photos/*.jpg; do
    name=$(basename "$photo" .jpg)
    day=$(echo "$name" | cut -d_ -f1)
    number=$(echo "$name" | sed 's/.*_IMG//')
    size=$(wc -c < "$photo")
    printf '%s %s %s\n' "$day" "$number" "$size" >> "$catalog"
done
cksum < "$catalog"
