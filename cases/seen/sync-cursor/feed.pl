#!/usr/bin/perl
# Follows a feed of changes. After a crash it goes on at the place that the
# cursor file tells.
use strict;
use warnings;
use Digest::MD5;
use IO::Handle;

my ($mode, $dir) = @ARGV;
my $keep = $mode eq 'repaired';

my $cursor;
sub save_cursor {
    my ($seq, $offset) = @_;
    my $text = sprintf "seq=%-12d offset=%-15d source=%-15s\n", $seq, $offset, 'feed.txt';
    if ($keep) {
        open($cursor, '>', "$dir/cursor") or die "cursor: $!" if !$cursor;
        seek($cursor, 0, 0) or die "seek: $!";
        print $cursor $text or die "write: $!";
        $cursor->flush or die "flush: $!";
    } else {
        open(my $f, '>', "$dir/cursor") or die "cursor: $!";
        print $f $text or die "write: $!";
        close $f or die "close: $!";
    }
}

open(my $feed, '<', "$dir/feed.txt") or die "feed.txt: $!";
open(my $copy, '>', "$dir/copy.txt") or die "copy.txt: $!";
my $offset = 0;
while (my $line = <$feed>) {
    my ($seq) = split / /, $line, 2;
    print $copy $line or die "write: $!";
    $copy->flush or die "flush: $!";
    $offset += length $line;
    save_cursor($seq, $offset);
}
close $copy or die "close: $!";

open(my $f, '<', "$dir/cursor") or die "cursor: $!";
my $last = <$f>;
open(my $c, '<', "$dir/copy.txt") or die "copy.txt: $!";
print Digest::MD5->new->addfile($c)->hexdigest, " $last";
