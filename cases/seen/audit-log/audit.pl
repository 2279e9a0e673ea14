#!/usr/bin/perl
# Appends access events to a tamper-evident audit log: each line carries the
# digest of the line before it.
use strict;
use warnings;
use Digest::SHA qw(sha1_hex);
use IO::Handle;
use POSIX qw(strftime);

my ($mode, $dir) = @ARGV;
my $every = $mode eq 'repaired' ? 200 : 1;    # records per sync

open(my $in,  '<',  "$dir/events.txt") or die "events.txt: $!";
open(my $log, '>>', "$dir/audit.log")  or die "audit.log: $!";

my ($count, $chain) = (0, '0' x 40);

sub record {
    my ($time, $user, $verb, $object) = @_;
    my $stamp = strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $time);
    my $line  = "$stamp $user $verb $object";
    $chain = sha1_hex($chain . $line);
    print $log "$line $chain\n" or die "write: $!";
    if (++$count % $every == 0) {
        $log->flush or die "flush: $!";
        $log->sync  or die "sync: $!";
    }
}

while (my $event = <$in>) {
    chomp $event;
    record(split /\t/, $event);
}
$log->flush or die "flush: $!";
$log->sync  or die "sync: $!";
close $log  or die "close: $!";
print "$count $chain\n";
