#!/bin/sh
# Totals of the meters behind a gateway.
set -e
perl "$1/gateway.pl" |
    awk '{ total[$1] += $2 } END { for (m in total) print m, total[m] }' |
    LC_ALL=C sort > "$2/totals.txt"
cksum < "$2/totals.txt"
