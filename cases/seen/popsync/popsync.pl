#!/usr/bin/perl
# fetches new mails into folders (mbox) and keeps track of what was fetched, so that nothing is fetched twice or lost
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Digest::SHA ();
use Drop;
use Seen;

my ($dump, $base, $out, $tracking) = @ARGV;
die "usage: popsync DUMP STATE OUT whole|journal\n" unless defined $tracking;

my %class = (whole => 'Seen::Whole', journal => 'Seen::Journal');
-d $out or mkdir $out or die "$out: $!";
# a run starts from the state of yesterday
{
    open my $from, '<:raw', $base or die "$base: $!";
    open my $to, '>:raw', "$out/seen" or die "$out/seen: $!";
    local $/;
    print {$to} scalar <$from>;
    close $to or die $!;
}
my $seen = $class{$tracking}->new(file => "$out/seen");

my %folder;
sub folder {
    my ($name) = @_;
    return $folder{$name} //= do {
        open my $f, '>>:raw', "$out/$name.mbox" or die "$name: $!";
        $f;
    };
}

my @rules = (
    [ qr/^List-Id:.*<dev\./mi        => 'dev' ],
    [ qr/^Subject:.*\b(?:invoice|receipt)\b/mi => 'billing' ],
    [ qr/^X-Spam-Level: \*{5}/m      => 'junk' ],
    [ qr/^From:.*\@build\./mi        => 'builds' ],
);

my (%per, $old, $bytes);
$old = $bytes = 0;
my $drop = Drop->new($dump);
my $sum = Digest::SHA->new(256);
while (my ($uid, $mail) = $drop->next) {
    if ($seen->has($uid)) { $old++; next }
    my ($head, $body) = split /\n\n/, $mail, 2;
    my $name = 'inbox';
    for my $r (@rules) {
        if ($head =~ $r->[0]) { $name = $r->[1]; last }
    }
    my ($date) = $head =~ /^X-Time: (\d+)/m;
    my ($from) = $head =~ /^From:.*?([^\s<>]+\@[^\s<>]+)/mi;
    $body =~ s/^(>*From )/>$1/mg;
    my $text = "From $from $date\n$head\nX-Uid: $uid\nX-Words: " . scalar(() = $body =~ /\w+/g) . "\n\n$body\n";
    my $to = folder($name);
    print {$to} $text;
    $to->flush;
    $sum->add($text);
    $per{$name}++;
    $bytes += length $text;
    $seen->add($uid, $date, $name);
}
$seen->finish;
close $_ or die $! for values %folder;

my $state = Digest::SHA->new(256);
$state->addfile("$out/seen");
print join(' ', map { "$_ $per{$_}" } sort keys %per), " old $old bytes $bytes known ", $seen->count, "\n";
print substr($sum->hexdigest, 0, 20), ' ', substr($state->hexdigest, 0, 20), "\n";
