package Scanner;
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use Spool qw(slurp publish);

# The content scanner: takes messages from `in`, leaves verdicts in `out`.

sub new {
    my ($class, %arg) = @_;
    return bless {%arg}, $class;
}

sub verdict {
    my ($text) = @_;
    my %seen;
    $seen{$1}++ while $text =~ /([a-z]{3,12})/g;
    my $score = 0;
    $score += $seen{$_} * (length($_) % 5 - 2) for sort keys %seen;
    my $words = keys %seen;
    return "score=$score words=$words id=" . md5_hex($text);
}

sub run {
    my ($self) = @_;
    while (1) {
        for my $name ($self->{wake}->names('.msg')) {
            my $text = slurp("$self->{in}/$name");
            unlink "$self->{in}/$name" or die "$name: $!";
            return if $name eq 'quit.msg';
            (my $reply = $name) =~ s/\.msg$/.verdict/;
            publish("$self->{out}/$reply", verdict($text));
            $self->{answer}->raise($reply);
        }
    }
}

1;
