#!/bin/sh
# A summary a tenant from an access log: requests, errors, bytes, mean time.
# usage: report.sh LOG OUTDIR
set -eu
export LC_ALL=C
log=$1
out=$2
mkdir -p "$out"

tenants=$(awk '{ print $2 }' "$log" | sort -u)
: > "$out/summary.txt"
for t in $tenants; do
    grep -F " $t " "$log" | awk -v t="${t#tenant=}" '
        {
            n++
            split($5, s, "="); if (s[2] >= 500) errors++
            split($6, b, "="); bytes += b[2]
            split($7, m, "="); ms += m[2]
        }
        END { printf "%s %d %d %.0f %.2f\n", t, n, errors, bytes, ms / n }' >> "$out/summary.txt"
done
sort -k2,2nr -k1,1 "$out/summary.txt" | head -n 5
cksum < "$out/summary.txt"
