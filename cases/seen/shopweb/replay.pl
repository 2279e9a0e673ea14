#!/usr/bin/perl
# Replays a log of requests against the shop's handlers.
# usage: replay.pl LOG SESSION-FOLDER [seconds-to-live] [gc-every]
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use SessionStore;

my ($log, $folder, $ttl, $every) = @ARGV;
my $store = SessionStore->new(folder => $folder, ttl => $ttl || 1800, gc_every => $every || 1);
open my $in, '<', $log or die "$log: $!";
my ($requests, $new, $added, $logins, $now) = (0) x 5;
while (<$in>) {
    my ($t, $sid, $path) = split;
    $now = $t;
    my $s = $store->load($sid, $now);
    $new++ unless %$s;
    $s->{created} //= $now;
    $s->{hits}++;
    $s->{last} = $path;
    if ($path =~ m{^/cart/add/(\d+)}) {
        $s->{cart} = join ',', grep { length } ($s->{cart} // ''), $1;
        $added++;
    } elsif ($path eq '/login') {
        $s->{user} = 'u' . hex(substr $sid, 0, 6);
        $logins++;
    }
    $store->save($sid, $s, $now);
    $requests++;
}
$store->gc($now);
printf "%d requests, %d new sessions, %d in carts, %d logins, %d expired, %d left\n", $requests, $new, $added, $logins,
    $store->{expired}, $store->count;
