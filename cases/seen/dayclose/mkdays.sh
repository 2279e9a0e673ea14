#!/bin/bash
# One journal per business day: voucher;account;amount in cents
set -e
mkdir -p "$1"
awk -v dir="$1" 'BEGIN { srand(5); for (d = 1; d <= 14; d++) { f = sprintf("%s/day%02d.csv", dir, d);
  for (i = 1; i <= 40000; i++) printf "%d;%d;%d\n", d * 100000 + i, 1000 + int(rand() * 800), int(rand() * 20000) - 9900 > f; close(f) } }'
