#!/usr/bin/perl
# Removes the messages named in deleted.txt from the mailbox.
use strict;
use warnings;
use Digest::MD5;
use File::Copy;

my ($mode, $dir) = @ARGV;
my $box = "$dir/inbox";
copy("$dir/inbox.before", $box) or die "copy: $!";

open(my $in, '<', $box) or die "inbox: $!";
my @message;    # [start, length] of each message
while (my $line = <$in>) {
    my $end = tell $in;
    if ($line =~ /^From /) {
        push @message, [$end - length $line, 0];
    }
    $message[-1][1] = $end - $message[-1][0];
}
close $in;

open(my $list, '<', "$dir/deleted.txt") or die "deleted.txt: $!";
chomp(my @deleted = <$list>);

sub copy_range {
    my ($from, $to, $start, $length) = @_;
    sysseek($from, $start, 0) or die "seek: $!";
    while ($length > 0) {
        my $n = sysread($from, my $block, $length < 262144 ? $length : 262144);
        die "read: $!" if !$n;
        syswrite($to, $block) == $n or die "write: $!";
        $length -= $n;
    }
}

# Writes the mailbox anew without the messages at these places.
sub rewrite_without {
    my %gone = map { $_ => 1 } @_;
    open(my $old, '<', $box) or die "inbox: $!";
    open(my $new, '>', "$box.new") or die "inbox.new: $!";
    my ($start, $at, @kept) = (0, 0);
    for my $i (0 .. $#message) {
        my ($begin, $length) = @{ $message[$i] };
        if ($gone{$i}) {
            copy_range($old, $new, $start, $begin - $start);
            $start = $begin + $length;
        } else {
            push @kept, [$at, $length];
            $at += $length;
        }
    }
    copy_range($old, $new, $start, (-s $old) - $start);
    close $new or die "close: $!";
    rename "$box.new", $box or die "rename: $!";
    @message = @kept;
}

if ($mode eq 'repaired') {
    rewrite_without(@deleted);
} else {
    my $removed = 0;
    rewrite_without($_ - $removed++) for @deleted;
}
open(my $f, '<', $box) or die "inbox: $!";
print scalar(@message), ' messages left, ', Digest::MD5->new->addfile($f)->hexdigest, "\n";
