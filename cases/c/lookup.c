/* Reads N pages of a cold file at random: `single` one after the other, `ahead` after telling the kernel of the next 64. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 64

int main(int argc, char **argv)
{
	static char page[4096];
	struct stat st;
	if (argc != 4)
		return 2;
	int fd = open(argv[1], O_RDONLY);
	long reads = atol(argv[2]);
	int ahead = !strcmp(argv[3], "ahead");
	if (fd < 0 || fstat(fd, &st) || st.st_size < 4096)
		return 1;
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	unsigned long long state = 88172645463325252ULL, sum = 0;
	for (long done = 0; done < reads; done += BATCH) {
		off_t place[BATCH];
		for (int i = 0; i < BATCH; i++) {
			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			place[i] = (off_t)(state % (st.st_size / 4096)) * 4096;
			if (ahead)
				posix_fadvise(fd, place[i], 4096, POSIX_FADV_WILLNEED);
		}
		for (int i = 0; i < BATCH; i++) {
			if (pread(fd, page, 4096, place[i]) != 4096)
				return 1;
			sum += (unsigned char)page[0];
		}
	}
	printf("%llu\n", sum);
	return 0;
}
