#!/usr/bin/perl
# logroute: split a shared access log into one log per tenant and sum up traffic for billing.
use strict;
use warnings;
use Getopt::Long;
use Digest::MD5;

my $keep = 0;
GetOptions('keep-open' => \$keep) or die "usage: logroute [--keep-open] LOG OUTDIR\n";
my ($log, $outdir) = @ARGV;
mkdir $outdir unless -d $outdir;

my (%handle, %stat);

sub append_kept {
    my ($tenant, $line) = @_;
    my $fh = $handle{$tenant};
    unless ($fh) {
        open $fh, '>>', "$outdir/$tenant.log" or die "$tenant: $!";
        $handle{$tenant} = $fh;
    }
    print {$fh} $line;
}

sub append {
    my ($tenant, $line) = @_;
    open my $fh, '>>', "$outdir/$tenant.log" or die "$tenant: $!";
    print {$fh} $line;
    close $fh or die "$tenant: $!";
}

my $put = $keep ? \&append_kept : \&append;

open my $in, '<', $log or die "$log: $!";
my $skipped = 0;
while (my $line = <$in>) {
    my ($host, $status, $bytes, $secs) =
        $line =~ /^([\w.-]+) \S+ \[[^\]]+\] "[^"]*" (\d{3}) (\d+) ([\d.]+)$/;
    unless (defined $host) { $skipped++; next }
    my $s = $stat{$host} ||= { n => 0, bytes => 0, err => 0, slow => 0 };
    $s->{n}++;
    $s->{bytes} += $bytes;
    $s->{err}++  if $status >= 500;
    $s->{slow}++ if $secs > 0.5;
    $put->($host, $line);
}
close $in;
close $_ for values %handle;

my $md5 = Digest::MD5->new;
for my $t (sort keys %stat) {
    my $s = $stat{$t};
    my $row = sprintf "%s %d requests %.1f MB %d errors %d slow", $t, $s->{n}, $s->{bytes} / 1e6, $s->{err}, $s->{slow};
    open my $fh, '<', "$outdir/$t.log" or die;
    $md5->addfile($fh);
    print "$row\n" if $s->{n} > 2000;
}
printf "%d tenants, %d lines skipped, %s\n", scalar keys %stat, $skipped, $md5->hexdigest;
