#!/usr/bin/perl
# Turns the invoice items into the fixed-format file that the bank expects.
use strict;
use warnings;
use IO::Handle;

my ($mode, $dir) = @ARGV;
open(my $in,  '<', "$dir/items.csv")    or die "items.csv: $!";
open(my $out, '>', "$dir/invoices.txt") or die "invoices.txt: $!";
$out->autoflush(1) if $mode ne 'repaired';    # so that one can follow it with tail -f

my ($invoices, $items, $total) = (0, 0, 0);
my ($current, $sum) = ('', 0);

sub finish {
    return if $current eq '';
    print $out sprintf("T%012d\r\n", $sum);
    $total += $sum;
    $sum = 0;
}

while (my $line = <$in>) {
    chomp $line;
    my ($invoice, $article, $quantity, $cents) = split /;/, $line;
    if ($invoice ne $current) {
        finish();
        $current = $invoice;
        $invoices++;
        print $out 'H', sprintf('%010d', $invoice), "\r\n";
    }
    print $out sprintf('P%-10s', $article);
    print $out sprintf('%05d', $quantity);
    print $out sprintf('%010d', $cents);
    print $out "\r\n";
    $sum += $quantity * $cents;
    $items++;
}
finish();
close $out or die "close: $!";
print "$invoices invoices, $items items, $total cents, ", -s "$dir/invoices.txt", " bytes\n";
