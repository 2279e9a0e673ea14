# Splits an access log by virtual host.
BEGIN { system("mkdir -p " dir) }
{
    host = $1
    bytes[host] += $NF
    if ($(NF - 1) >= 400) bad[host]++
    sub(/^[^ ]+ /, "")
    gsub(/\[|\]/, "")
    out = dir "/" host ".log"
    print >> out
    if (careful) close(out)
}
END {
    for (h in bytes) { n++; total += bytes[h]; errs += bad[h] }
    print n, NR, total, errs
}
