#!/usr/bin/perl
# makes the dump of the mails that wait, and yesterday's state
use strict;
use warnings;

my ($dump, $state, $known, $waiting) = @ARGV;
srand 4711;
my @w = qw(the build of branch main failed please see attached minutes From time we agreed that part two is late invoice and
  shipping moved again because nobody had looked at numbers before noon thanks for your patience with this matter);
my ($n, $time) = (400_000, 1_700_000_000);
my $uid = sub { $n += 1 + int rand 5; sprintf '%010d-%08x.%s', $n, rand 0xffffffff, 'mx2.example.org' };
open my $s, '>', $state or die $!;
my @old;
for (1 .. $known) {
    my $u = $uid->();
    $time += int rand 900;
    print {$s} "$u\t$time\t", (qw(inbox dev billing junk builds))[rand 5], "\n";
    push @old, $u;
}
close $s;
open my $d, '>', $dump or die $!;
my $mail = sub {
    my ($u) = @_;
    $time += int rand 300;
    my $k = int rand 6;
    my $m = "From: " . ($k == 0 ? "CI <robot\@build.example.org>" : "Person $k <p$k\@example.net>") . "\nTo: me\@example.org\n";
    $m .= "Subject: " . ($k == 1 ? "your invoice" : "about $w[rand @w] $w[rand @w]") . "\nX-Time: $time\n";
    $m .= "List-Id: development <dev.lists.example.org>\n" if $k == 2;
    $m .= "X-Spam-Level: *****\n" if $k == 3;
    $m .= "\n";
    for (1 .. 20 + rand 260) { $m .= join(' ', map { $w[rand @w] } 1 .. 10) . "\n" }
    print {$d} "UID $u ", length $m, "\n$m";
};
$mail->($_) for @old[-200 .. -1];
$mail->($uid->()) for 1 .. $waiting;
close $d;
