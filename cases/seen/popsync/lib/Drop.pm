package Drop;
# the mails that wait on the server; here a dump of them: "UID <uid> <bytes>" and the mail
use strict;
use warnings;

sub new {
    my ($class, $file) = @_;
    open my $in, '<:raw', $file or die "$file: $!";
    return bless { in => $in }, $class;
}

sub next {
    my ($self) = @_;
    my $line = readline $self->{in};
    return unless defined $line;
    my ($uid, $size) = $line =~ /^UID (\S+) (\d+)$/ or die "not a mail: $line";
    my $mail = '';
    read($self->{in}, $mail, $size) == $size or die "mail $uid is cut off";
    return ($uid, $mail);
}

1;
