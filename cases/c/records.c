/* Reads N records of 32 KiB at random places of a cold file: `parts` in eight reads, which looks sequential to the
 * kernel, so that it reads ahead; `whole` in one read, with the kernel told that the order is random. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD (32 * 1024)

int main(int argc, char **argv)
{
	static char record[RECORD];
	struct stat st;
	if (argc != 4)
		return 2;
	int fd = open(argv[1], O_RDONLY);
	long reads = atol(argv[2]);
	int whole = !strcmp(argv[3], "whole");
	size_t part = whole ? RECORD : RECORD / 8;
	if (fd < 0 || fstat(fd, &st) || st.st_size < RECORD)
		return 1;
	if (whole)
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	unsigned long long state = 88172645463325252ULL, sum = 0;
	for (long i = 0; i < reads; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		off_t place = (off_t)(state % (st.st_size / RECORD)) * RECORD;
		for (size_t at = 0; at < RECORD; at += part)
			if (pread(fd, record + at, part, place + at) != (ssize_t)part)
				return 1;
		sum += (unsigned char)record[RECORD - 1];
	}
	printf("%llu\n", sum);
	return 0;
}
