#!/usr/bin/perl
# One IMAP session over a Maildir.
use strict;
use warnings;
use Time::HiRes ();

my ($box, $opt) = @ARGV;
my $check = defined $opt && $opt eq '--check-folder';
mkdir "$box/new";
my (%msg, @order, $seen_at);

sub scan {
    my $stamp = join '/', map { (Time::HiRes::stat("$box/$_"))[9] } qw(cur new);
    return if $check && defined $seen_at && $seen_at eq $stamp;
    $seen_at = $stamp;
    my %now;
    for my $sub (qw(cur new)) {
        opendir my $dh, "$box/$sub" or die "$sub: $!";
        while (defined(my $n = readdir $dh)) {
            next if $n =~ /^\./;
            my @st = stat "$box/$sub/$n";
            my ($uid) = $n =~ /^(\d+)/;
            $now{$uid} = [ "$box/$sub/$n", $st[7], $n =~ /,(\w+)$/ ? $1 : '' ];
        }
    }
    %msg = %now;
    @order = sort { $a <=> $b } keys %msg;
}

my ($total, $words, %freq) = (0, 0);
for my $cmd (1 .. 90) {
    scan();
    if ($cmd % 4 == 0) {
        my $bytes = 0;
        $bytes += $msg{$_}[1] for @order;
        $total += $bytes % 1000003;
    } else {
        my $m = $msg{ $order[ ($cmd * 31 - 1) % @order ] };
        open my $fh, '<', $m->[0] or die $!;
        while (my $line = <$fh>) {
            for my $w (split ' ', $line) { $freq{ lc $w }++; $words++ }
        }
        close $fh;
    }
    if ($cmd % 30 == 0) {
        open my $o, '>', sprintf("%s/new/%d.new", $box, 1800000000 + $cmd) or die $!;
        print $o "From: someone\n\nnew mail $cmd\n";
        close $o;
    }
}
print scalar(@order), " $total $words $freq{report}\n";
