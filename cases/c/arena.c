/* Reads a cached file N times in requests of 1 MiB: each into memory mapped for it and given back (`fresh`), or into
 * one buffer (`reuse`). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUEST (1024 * 1024)

static void *take(void)
{
	void *space = mmap(NULL, REQUEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return space == MAP_FAILED ? NULL : space;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	int fd = open(argv[1], O_RDONLY);
	long passes = atol(argv[2]);
	int reuse = !strcmp(argv[3], "reuse");
	unsigned char *space = reuse ? take() : NULL;
	unsigned long long sum = 0;
	if (fd < 0)
		return 1;
	for (long pass = 0; pass < passes; pass++) {
		off_t place = 0;
		for (;;) {
			if (!reuse)
				space = take();
			if (!space)
				return 1;
			ssize_t got = pread(fd, space, REQUEST, place);
			if (got < 0)
				return 1;
			if (got > 0)
				sum += space[0];
			if (!reuse)
				munmap(space, REQUEST);
			if (got == 0)
				break;
			place += got;
		}
	}
	printf("%llu\n", sum);
	return 0;
}
