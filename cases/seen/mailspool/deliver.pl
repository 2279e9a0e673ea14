#!/usr/bin/perl
# deliver.pl [--pipes] QUEUE WORK: hands each queued message to the content scanner, a process of its own, through
# spool folders, and appends it with the verdict to the recipient's mailbox.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Digest::MD5 qw(md5_hex);
use File::Basename qw(basename);
use File::Path qw(make_path);
use Scanner;
use Signal;
use Spool qw(slurp publish);

my $kind = 'Signal::Interval';
if (@ARGV && $ARGV[0] eq '--pipes') {
    shift @ARGV;
    $kind = 'Signal::Pipe';
}
my ($queue, $work) = @ARGV;
my ($in, $out, $boxes) = map { "$work/$_" } qw(in out boxes);
make_path($in, $out, $boxes);
my ($to_scanner, $from_scanner) = map { $kind->new($_) } $in, $out;

my $scanner = fork // die "fork: $!";
if (!$scanner) {
    Scanner->new(in => $in, out => $out, wake => $to_scanner, answer => $from_scanner)->run;
    exit 0;
}

sub scan {
    my ($name, $text) = @_;
    publish("$in/$name.msg", $text);
    $to_scanner->raise("$name.msg");
    my ($reply) = $from_scanner->names('.verdict');
    my $verdict = slurp("$out/$reply");
    unlink "$out/$reply" or die "$reply: $!";
    return $verdict;
}

my ($count, $bytes, @verdicts) = (0, 0);
for my $file (sort glob "$queue/*.eml") {
    my $text = slurp($file);
    my ($rcpt) = $text =~ /^To: (\w+)\@/m;
    my $verdict = scan(basename($file, '.eml'), $text);
    open(my $box, '>>:raw', "$boxes/$rcpt") or die "$rcpt: $!";
    (my $body = $text) =~ s/^(>*From )/>$1/mg;
    print {$box} "From MAILER-DAEMON Thu Jan  1 00:00:00 1970\nX-Scan: $verdict\n$body\n";
    close $box or die "$rcpt: $!";
    $count++;
    $bytes += length $text;
    push @verdicts, $verdict;
}
publish("$in/quit.msg", '');
$to_scanner->raise('quit.msg');
waitpid $scanner, 0;
die "scanner failed\n" if $?;
my $size = 0;
$size += -s for glob "$boxes/*";
printf "%d messages, %d bytes, mailboxes %d bytes, %s\n", $count, $bytes, $size, md5_hex(join "\n", @verdicts);
