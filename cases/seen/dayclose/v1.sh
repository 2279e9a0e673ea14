#!/bin/bash
# Closes the business days of a half month. The bookkeeping service takes jobs
# from its inbox and leaves the closing balances in its outbox; a day's closing
# balances are the next day's opening balances.
set -eu
here=$1 days=$2 work=$3
mkdir -p "$work/inbox" "$work/outbox"

service() {
    local job day
    while :; do
        for job in "$work"/inbox/*.job; do
            [ -e "$job" ] || continue
            day=$(basename "$job" .job)
            [ "$day" = stop ] && return
            awk -f "$here/close-day.awk" "$(cat "$job")" "$days/$day.csv" > "$work/outbox/$day.part"
            rm "$job"
            mv "$work/outbox/$day.part" "$work/outbox/$day.bal"
        done
        sleep 0.1
    done
}

submit() {                      # day, file with the opening balances
    echo "$2" > "$work/inbox/$1.new"
    mv "$work/inbox/$1.new" "$work/inbox/$1.job"
}

service &
opening=/dev/null
for file in "$days"/day*.csv; do
    day=$(basename "$file" .csv)
    submit "$day" "$opening"
    until [ -e "$work/outbox/$day.bal" ]; do
        sleep 0.1
    done
    opening=$work/outbox/$day.bal
done
submit stop -
wait
cat "$opening" | cksum
grep -h turnover "$work"/outbox/*.bal | cksum
