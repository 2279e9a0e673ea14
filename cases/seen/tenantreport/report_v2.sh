#!/bin/sh
# A summary a tenant from an access log: requests, errors, bytes, mean time.
# usage: report.sh LOG OUTDIR
set -eu
export LC_ALL=C
log=$1
out=$2
mkdir -p "$out"

awk '
    {
        split($2, k, "="); t = k[2]
        n[t]++
        split($5, s, "="); if (s[2] >= 500) errors[t]++
        split($6, b, "="); bytes[t] += b[2]
        split($7, m, "="); ms[t] += m[2]
    }
    END { for (t in n) printf "%s %d %d %.0f %.2f\n", t, n[t], errors[t], bytes[t], ms[t] / n[t] }' "$log" |
    sort > "$out/summary.txt"
sort -k2,2nr -k1,1 "$out/summary.txt" | head -n 5
cksum < "$out/summary.txt"
