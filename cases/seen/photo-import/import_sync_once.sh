#!/bin/sh
# Imports the card into album/YEAR-MONTH.
set -e
cd "$1"
count=0
for picture in card/*.jpg; do
    name=${picture#card/}
    month=${name%????-*}
    month=${month#????}
    [ -d "album/2024-$month" ] || mkdir -p "album/2024-$month"
    cp "$picture" "album/2024-$month/$name"
    count=$((count + 1))
done
sync
echo "$count pictures, $(cat album/*/*.jpg | cksum)"
