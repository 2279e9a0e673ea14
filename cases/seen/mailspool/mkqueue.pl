#!/usr/bin/perl
use strict;
use warnings;
use File::Path qw(make_path);
my ($queue) = @ARGV;
make_path($queue);
my $seed = 9;
sub below { my ($n) = @_; $seed = ($seed * 1103515245 + 12345) % 2147483648; return int($seed / 65536) % $n }
my @words = map { join '', map { chr(97 + below(26)) } 1 .. 3 + below(9) } 1 .. 900;
for my $m (1 .. 36) {
    open(my $fh, '>', sprintf('%s/%04d.eml', $queue, $m)) or die $!;
    print {$fh} 'From: sender', below(50), "\@example.org\nTo: user", below(6), "\@example.net\nSubject: report $m\n\n";
    for (1 .. 3600 + below(1800)) {
        print {$fh} below(50) ? '' : 'From ', join(' ', map { $words[below(900)] } 1 .. 9), "\n";
    }
    close $fh or die $!;
}
