#!/bin/sh
# snapshot.sh BASE [rsync options]: make BASE/daily.0 from BASE/share, sharing what has not
# changed with BASE/daily.1 (hard links), and print what the nightly mail wants to say.
set -eu
base=$1
shift
log=$base/rsync.log

rsync -a --delete "$@" --link-dest="$base/daily.1" --stats --out-format='%i %l %n' \
    "$base/share/" "$base/daily.0/" >"$log"

echo "new or changed:"
grep '^>f' "$log" | awk '{ print $3, $2; n++; s += $2 } END { printf "%d files, %d bytes\n", n, s }'
grep '^Number of files:' "$log"
grep '^Number of regular files transferred:' "$log"
echo "shared with daily.1: $(find "$base/daily.0" -type f -links +1 | wc -l)"
