package SessionStore;
# Sessions as files of key=value lines, one per session, in one folder.
use strict;
use warnings;
use Fcntl qw(:DEFAULT :flock);

sub new {
    my ($class, %opt) = @_;
    my $self = bless { ttl => 1800, gc_every => 1, requests => 0, expired => 0, %opt }, $class;
    mkdir $self->{folder} or die "$self->{folder}: $!" unless -d $self->{folder};
    return $self;
}

sub path { "$_[0]{folder}/sess_$_[1]" }

sub load {
    my ($self, $sid, $now) = @_;
    $self->gc($now) if ++$self->{requests} % $self->{gc_every} == 0;
    my $path = $self->path($sid);
    open my $in, '<', $path or return {};
    flock $in, LOCK_SH or die "$path: $!";
    if ((stat $in)[9] < $now - $self->{ttl}) {      # too old, though nobody has removed it yet
        $self->{expired}++;
        return {};
    }
    my %s;
    while (<$in>) {
        chomp;
        my ($k, $v) = split /=/, $_, 2;
        $s{$k} = $v;
    }
    return \%s;
}

sub save {
    my ($self, $sid, $s, $now) = @_;
    my $path = $self->path($sid);
    sysopen my $out, $path, O_RDWR | O_CREAT, 0600 or die "$path: $!";
    flock $out, LOCK_EX or die "$path: $!";
    my $text = join '', map { "$_=$s->{$_}\n" } sort keys %$s;
    syswrite $out, $text or die "$path: $!";
    truncate $out, length $text;
    close $out or die "$path: $!";
    utime $now, $now, $path;
}

# removes the sessions that nobody has used for ttl seconds
sub gc {
    my ($self, $now) = @_;
    opendir my $d, $self->{folder} or die "$self->{folder}: $!";
    for my $name (readdir $d) {
        next unless $name =~ /^sess_[0-9a-f]{32}$/;
        my @st = stat "$self->{folder}/$name" or next;
        if ($st[9] < $now - $self->{ttl}) {
            unlink "$self->{folder}/$name";
            $self->{expired}++;
        }
    }
    closedir $d;
}

sub count {
    my $self = shift;
    opendir my $d, $self->{folder} or die;
    return scalar grep { /^sess_/ } readdir $d;
}

1;
