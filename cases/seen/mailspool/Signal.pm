package Signal;
use strict;
use warnings;
use IO::Handle;
use POSIX qw(mkfifo);
use Time::HiRes ();

# How one side learns that the other has put a file into a folder.

package Signal::Interval;

sub new { my ($class, $folder) = @_; return bless { folder => $folder }, $class }
sub raise { }

sub names {
    my ($self, $suffix) = @_;
    while (1) {
        opendir(my $dh, $self->{folder}) or die "$self->{folder}: $!";
        my @names = sort grep { /\Q$suffix\E$/ } readdir $dh;
        closedir $dh;
        return @names if @names;
        Time::HiRes::sleep(0.05);
    }
}

package Signal::Pipe;

sub new {
    my ($class, $folder) = @_;
    my $name = "$folder/.bell";
    -p $name or POSIX::mkfifo($name, 0600) or die "$name: $!";
    open(my $fh, '+<', $name) or die "$name: $!";
    $fh->autoflush(1);
    return bless { fh => $fh }, $class;
}

sub raise { my ($self, $name) = @_; print { $self->{fh} } "$name\n" }

sub names {
    my ($self) = @_;
    my $line = readline $self->{fh};
    chomp $line;
    return $line;
}

1;
