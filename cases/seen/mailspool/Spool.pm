package Spool;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT_OK = qw(slurp publish);

# Files that appear whole: written beside their place and renamed.

sub slurp {
    my ($name) = @_;
    open(my $fh, '<:raw', $name) or die "$name: $!";
    local $/;
    return scalar <$fh>;
}

sub publish {
    my ($name, $text) = @_;
    open(my $fh, '>:raw', "$name.tmp") or die "$name.tmp: $!";
    print {$fh} $text;
    close $fh or die "$name.tmp: $!";
    rename "$name.tmp", $name or die "$name: $!";
}

1;
