#!/bin/sh
# Balance of the ledger: credits less debits.
credit=0 debit=0 n=0
while read -r date kind cents text; do
    case $kind in
    credit) credit=$((credit + cents)) ;;
    debit) debit=$((debit + cents)) ;;
    esac
    n=$((n + 1))
done < "$1/ledger.txt"
echo "$n entries, credit $credit, debit $debit, balance $((credit - debit))"
