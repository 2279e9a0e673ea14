#!/usr/bin/perl
# maildir_import: file the messages of an mbox into a Maildir, within the user's quota.
use strict;
use warnings;
use Getopt::Long;
use Digest::MD5 qw(md5_hex);

my ($quota, $track) = (20_000_000, 0);
GetOptions('quota=i' => \$quota, 'track-size' => \$track) or die "usage: maildir_import [options] MBOX MAILDIR\n";
my ($mbox, $maildir) = @ARGV;
-d "$maildir/$_" or mkdir "$maildir/$_" or die "$maildir/$_: $!" for qw(cur new tmp);

sub maildir_usage {
    my ($bytes, $count) = (0, 0);
    for my $sub (qw(cur new)) {
        opendir my $dh, "$maildir/$sub" or die "$sub: $!";
        while (defined(my $name = readdir $dh)) {
            next if $name =~ /^\./;
            my @st = stat "$maildir/$sub/$name" or next;
            $bytes += $st[7];
            $count++;
        }
        closedir $dh;
    }
    return ($bytes, $count);
}

my ($known_bytes, $known_count);
sub usage {
    return maildir_usage() unless $track;
    ($known_bytes, $known_count) = maildir_usage() unless defined $known_bytes;
    return ($known_bytes, $known_count);
}

my ($seq, $delivered, $over, @ids) = (0, 0, 0);
sub deliver {
    my ($text) = @_;
    my ($bytes, $count) = usage();
    my $len = length $text;
    if ($bytes + $len > $quota) { $over++; return }
    my $name = sprintf "%d.M%dP%d.mx", 1710000000 + $seq, $count, $seq++;
    open my $out, '>', "$maildir/tmp/$name" or die "$name: $!";
    print {$out} $text;
    close $out or die "$name: $!";
    rename "$maildir/tmp/$name", "$maildir/new/$name,S=$len" or die "$name: $!";
    if ($track) { $known_bytes += $len; $known_count++ }
    push @ids, $text =~ /^Message-ID: (\S+)/m;
    $delivered++;
}

open my $in, '<', $mbox or die "$mbox: $!";
my $msg;
while (my $line = <$in>) {
    if ($line =~ /^From \S+ /) {
        deliver($msg) if defined $msg;
        $msg = '';
        next;
    }
    $line =~ s/^>(>*From )/$1/;
    $msg .= $line;
}
deliver($msg) if defined $msg;

my ($bytes, $count) = maildir_usage();
printf "delivered %d, over quota %d, mailbox now %d messages, %d bytes (%.1f%% of quota), ids %s\n",
    $delivered, $over, $count, $bytes, 100 * $bytes / $quota, md5_hex(join ',', @ids);
