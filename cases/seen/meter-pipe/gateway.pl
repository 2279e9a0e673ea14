#!/usr/bin/perl
# Stands for a meter gateway: a burst of readings at each tick of its bus.
use strict;
use warnings;
use Time::HiRes qw(sleep);

my ($seed, $ticks) = (12345, 70);
for my $tick (1 .. $ticks) {
    sleep 0.02;
    my $burst = '';
    for (1 .. 50) {
        $seed = ($seed * 1103515245 + 12345) % 2147483648;
        $burst .= sprintf "meter%02d %d\n", ($seed >> 8) % 40, ($seed >> 16) % 500;
    }
    syswrite(STDOUT, $burst) == length $burst or die "write: $!";
}
