package Seen;
# which messages were fetched before: one line each, "uid <tab> time <tab> folder", sorted by uid
use strict;
use warnings;

sub new {
    my ($class, %o) = @_;
    my $self = bless { file => $o{file}, known => {}, lines => [], sorted => 1, journal => undef }, $class;
    $self->_read($o{file});
    return $self;
}

sub _read {
    my ($self, $file) = @_;
    return unless -e $file;
    open my $in, '<', $file or die "$file: $!";
    while (my $line = <$in>) {
        $self->_note((split /\t/, $line, 2)[0], $line);
    }
    close $in;
}

sub _note {
    my ($self, $uid, $line) = @_;
    return if $self->{known}{$uid}++;
    my $l = $self->{lines};
    # the uids of a server nearly always rise
    $self->{sorted} = 0 if @$l && $line lt $l->[-1];
    push @$l, $line;
}

sub has   { return exists $_[0]{known}{ $_[1] } }
sub count { return scalar @{ $_[0]{lines} } }

# safe against a crash: the old file stays until the new one is whole
sub save {
    my ($self) = @_;
    my $new = "$self->{file}.new";
    if (!$self->{sorted}) {
        @{ $self->{lines} } = sort @{ $self->{lines} };
        $self->{sorted} = 1;
    }
    open my $out, '>', $new or die "$new: $!";
    print {$out} @{ $self->{lines} };
    close $out or die "$new: $!";
    rename $new, $self->{file} or die "$self->{file}: $!";
}

package Seen::Whole;
our @ISA = ('Seen');

sub add {
    my ($self, $uid, $time, $folder) = @_;
    $self->_note($uid, "$uid\t$time\t$folder\n");
    $self->save;
}

sub finish { }

package Seen::Journal;
our @ISA = ('Seen');

sub new {
    my ($class, %o) = @_;
    my $self = Seen::new($class, %o);
    # what a run that did not finish left behind
    $self->_read("$o{file}.journal");
    open $self->{journal}, '>>', "$o{file}.journal" or die "$o{file}.journal: $!";
    return $self;
}

sub add {
    my ($self, $uid, $time, $folder) = @_;
    my $line = "$uid\t$time\t$folder\n";
    $self->_note($uid, $line);
    defined syswrite($self->{journal}, $line) or die "journal: $!";
}

sub finish {
    my ($self) = @_;
    $self->save;
    close $self->{journal};
    unlink "$self->{file}.journal";
}

1;
