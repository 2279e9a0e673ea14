/* Appends N entries of 200 bytes to a file: `each` opens it O_DSYNC, `end` syncs once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char entry[200];
	if (argc != 4)
		return 2;
	int each = !strcmp(argv[3], "each");
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | (each ? O_DSYNC : 0), 0600);
	long entries = atol(argv[2]);
	if (fd < 0)
		return 1;
	memset(entry, 'j', sizeof entry);
	for (long i = 0; i < entries; i++)
		if (write(fd, entry, sizeof entry) != sizeof entry)
			return 1;
	if (!each && fdatasync(fd))
		return 1;
	printf("%ld\n", entries);
	return 0;
}
