/* Reads N windows of 256 KiB of a cached file at random, each mapped and given back (`window`), or through one mapping
 * of the whole file that stays (`whole`). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define WINDOW (256 * 1024)

int main(int argc, char **argv)
{
	struct stat st;
	if (argc != 4)
		return 2;
	int fd = open(argv[1], O_RDONLY);
	long windows = atol(argv[2]);
	int whole = !strcmp(argv[3], "whole");
	if (fd < 0 || fstat(fd, &st) || st.st_size < WINDOW)
		return 1;
	unsigned char *all = whole ? mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
	if (all == MAP_FAILED)
		return 1;
	unsigned long long state = 88172645463325252ULL, sum = 0;
	for (long i = 0; i < windows; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		off_t place = (off_t)(state % (st.st_size / WINDOW)) * WINDOW;
		unsigned char *map = whole ? all + place : mmap(NULL, WINDOW, PROT_READ, MAP_SHARED, fd, place);
		if (map == MAP_FAILED)
			return 1;
		for (int at = 0; at < WINDOW; at += 4096)
			sum += map[at];
		if (!whole)
			munmap(map, WINDOW);
	}
	printf("%llu\n", sum);
	return 0;
}
