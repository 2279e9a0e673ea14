#!/bin/sh
# chromstats: per-chromosome numbers of a VCF file, in one pass.
# usage: chromstats-onepass.sh FILE.vcf OUTDIR
# Writes OUTDIR/CHROM.pos (positions of the variants that pass) and prints a table.
set -eu
vcf=$1
out=$2
mkdir -p "$out"

printf 'chrom\tvariants\tpass\tti/tv\tmean_qual\tmax_gap\n'
grep -v '^#' "$vcf" | cut -f 1-7 | awk -F '\t' -v OFS='\t' -v out="$out" '
    function transition(r, a) { return r a ~ /^(AG|GA|CT|TC)$/ }
    function report() {
        if (!n) return
        printf "%s\t%d\t%d\t%.3f\t%.1f\t%d\n", chrom, n, pass, ti / (tv ? tv : 1), qual / n, gap
        close(pos)
        n = pass = ti = tv = qual = gap = 0
    }
    $1 != chrom { report(); chrom = $1; pos = out "/" chrom ".pos" }
    {
        n++
        qual += $6
        if ($7 == "PASS") { pass++; print $2 > pos }
        if (transition($4, $5)) ti++; else tv++
        if (n > 1 && $2 - last > gap) gap = $2 - last
        last = $2
    }
    END { report() }'
echo "positions: $(cat "$out"/*.pos | wc -l), checksum $(cat "$out"/*.pos | cksum | cut -d ' ' -f 1)"
