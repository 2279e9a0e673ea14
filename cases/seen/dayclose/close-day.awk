# Closes one day: the opening balances come first, the day's journal second.
BEGIN { FS = OFS = ";" }
FNR == NR { balance[$1] = $2; next }
{ balance[$2] += $3; turnover += $3 < 0 ? -$3 : $3; check = (check * 31 + $3 + 20000) % 1000000007 }
END {
    for (a = 1000; a < 1800; a++) if (a in balance) print a, balance[a]
    print "turnover", turnover
    print "check", check
}
