use strict; use warnings;
my $d = $ARGV[0];
mkdir "$d/mail"; mkdir "$d/mail/cur";
srand(4);
my @w = qw(offer invoice hello meeting tomorrow budget review draft final report dear regards attached please);
for my $i (1 .. 3000) {
    my $f = $i % 3 ? "S" : "RS";
    open my $o, '>', sprintf("%s/mail/cur/%d.M%dP77.host:2,%s", $d, 1700000000 + $i * 61, $i, $f) or die $!;
    print $o "From: user$i\@example.org\nSubject: message $i\n\n";
    my $n = $i % 31 ? 20 : 28000;
    print $o join(" ", map { $w[int rand @w] } 1 .. 9), "\n" for 1 .. $n / 8;
    close $o;
}
