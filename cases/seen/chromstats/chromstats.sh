#!/bin/sh
# chromstats: per-chromosome numbers of a VCF file.
# usage: chromstats.sh FILE.vcf OUTDIR
# Writes OUTDIR/CHROM.pos (positions of the variants that pass) and prints a table.
set -eu
vcf=$1
out=$2
mkdir -p "$out"

chroms="$(seq -f 'chr%.0f' 1 22) chrX chrY"

printf 'chrom\tvariants\tpass\tti/tv\tmean_qual\tmax_gap\n'
for c in $chroms; do
    grep -w "^$c" "$vcf" | cut -f 1-7 | awk -F '\t' -v OFS='\t' -v pos="$out/$c.pos" '
        function transition(r, a) { return r a ~ /^(AG|GA|CT|TC)$/ }
        {
            n++
            qual += $6
            if ($7 == "PASS") { pass++; print $2 > pos }
            if (transition($4, $5)) ti++; else tv++
            if (n > 1 && $2 - last > gap) gap = $2 - last
            last = $2
            chrom = $1
        }
        END { if (n) printf "%s\t%d\t%d\t%.3f\t%.1f\t%d\n", chrom, n, pass, ti / (tv ? tv : 1), qual / n, gap }'
done
echo "positions: $(cat "$out"/*.pos | wc -l), checksum $(cat "$out"/*.pos | cksum | cut -d ' ' -f 1)"
