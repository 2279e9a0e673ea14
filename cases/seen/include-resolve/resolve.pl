#!/usr/bin/perl
# Resolves the includes of all sources against the include path and writes
# the dependency file for the build.
use strict;
use warnings;

my ($mode, $dir) = @ARGV;

open(my $pf, '<', "$dir/include_path.txt") or die "include_path.txt: $!";
chomp(my @path = <$pf>);
close $pf;

sub find_by_probing {
    my ($name) = @_;
    for my $folder (@path) {
        my $candidate = "$dir/tree/$folder/$name";
        return "$folder/$name" if -f $candidate;
    }
    return undef;
}

my %where;

sub find_listed {
    my ($name) = @_;
    if (!%where) {
        for my $folder (reverse @path) {
            opendir(my $dh, "$dir/tree/$folder") or die "$folder: $!";
            $where{$_} = "$folder/$_" for grep { !/^\./ } readdir $dh;
            closedir $dh;
        }
    }
    return $where{$name};
}

my $find = $mode eq 'repaired' ? \&find_listed : \&find_by_probing;
my ($sources, $found) = (0, 0);
open(my $in,  '<', "$dir/includes.txt") or die "includes.txt: $!";
open(my $out, '>', "$dir/deps.mk")      or die "deps.mk: $!";
while (my $line = <$in>) {
    chomp $line;
    my ($source, $names) = split /: /, $line;
    my @paths;
    for my $name (split ' ', $names) {
        my $p = $find->($name) // die "$source: $name not found\n";
        push @paths, $p;
        $found++;
    }
    (my $object = $source) =~ s/\.c$/.o/;
    print $out "$object: $source @paths\n";
    $sources++;
}
close $out or die "deps.mk: $!";
print "$sources sources, $found includes, ", -s "$dir/deps.mk", " bytes\n";
