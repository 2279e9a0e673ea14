#!/bin/sh
# Balance of the ledger: credits less debits.
awk '$2 == "credit" { credit += $3 }
     $2 == "debit"  { debit += $3 }
     END { printf "%d entries, credit %.0f, debit %.0f, balance %.0f\n", NR, credit, debit, credit - debit }
' "$1/ledger.txt"
