#!/usr/bin/perl
# Writes an access log of a service with many tenants.
use strict;
use warnings;
my ($out, $lines) = @ARGV;
srand(3);
my @paths  = map { "/api/v1/$_" } qw(orders items users search login cart images export);
my @status = ((200) x 20, (304) x 4, 404, 500);
open(my $f, '>', $out) or die "$out: $!";
my $t = 1700000000;
for my $n (1 .. $lines) {
    $t++ if rand() < 0.05;
    printf $f "%d tenant=t%03d %s %s status=%d bytes=%d ms=%d agent=\"Mozilla/5.0 (X11; Linux x86_64) client/%d.%d\"\n",
        $t, int(48 * rand() ** 1.5), (rand() < .8 ? 'GET' : 'POST'), $paths[rand @paths],
        $status[rand @status], int(rand 50000), int(5 + rand(20) ** 2), rand 9, rand 30;
}
close($f) or die;
