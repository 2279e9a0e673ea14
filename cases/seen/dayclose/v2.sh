#!/bin/bash
# Closes the business days of a half month. The bookkeeping service takes jobs
# from its queue (a FIFO) and leaves the closing balances in its outbox; a day's
# closing balances are the next day's opening balances.
set -eu
here=$1 days=$2 work=$3
mkdir -p "$work/outbox"
mkfifo "$work/jobs" "$work/done"

service() {
    local day opening
    while read -r day opening; do
        [ "$day" = stop ] && return
        awk -f "$here/close-day.awk" "$opening" "$days/$day.csv" > "$work/outbox/$day.part"
        mv "$work/outbox/$day.part" "$work/outbox/$day.bal"
        echo "$day"
    done
}

service < "$work/jobs" > "$work/done" &
exec 3> "$work/jobs" 4< "$work/done"
opening=/dev/null
for file in "$days"/day*.csv; do
    day=$(basename "$file" .csv)
    echo "$day $opening" >&3
    read -r finished <&4
    [ "$finished" = "$day" ]
    opening=$work/outbox/$day.bal
done
echo "stop -" >&3
wait
cat "$opening" | cksum
grep -h turnover "$work"/outbox/*.bal | cksum
