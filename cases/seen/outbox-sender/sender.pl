#!/usr/bin/perl
# Hands the messages of the outbox to the relay's pick-up folder, at no more
# than the rate that the relay accepts.
use strict;
use warnings;
use File::Copy;
use Time::HiRes qw(sleep);

my ($dir) = @ARGV;
my $rate = 40;    # messages per second
mkdir "$dir/pickup";
opendir(my $dh, "$dir/outbox") or die "outbox: $!";
my @names = sort grep { /\.eml$/ } readdir $dh;
closedir $dh;

my ($count, $bytes) = (0, 0);
for my $name (@names) {
    copy("$dir/outbox/$name", "$dir/pickup/$name.part") or die "$name: $!";
    rename "$dir/pickup/$name.part", "$dir/pickup/$name" or die "$name: $!";
    $count++;
    $bytes += -s "$dir/pickup/$name";
    sleep(1 / $rate);
}
print "$count messages, $bytes bytes\n";
