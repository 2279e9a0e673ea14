/* Reads N cells of 64 bytes at random places of a cached file: `stdio` with fseek and fread through a large buffer,
 * which each seek throws away, or `pread`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char buffer[64 * 1024];
	unsigned char cell[64];
	struct stat st;
	if (argc != 4)
		return 2;
	int plain = !strcmp(argv[3], "pread");
	FILE *in = fopen(argv[1], "r");
	long reads = atol(argv[2]);
	if (!in || fstat(fileno(in), &st) || st.st_size < 64)
		return 1;
	/* glibc takes the size only with a buffer. */
	setvbuf(in, buffer, _IOFBF, sizeof buffer);
	unsigned long long state = 88172645463325252ULL, sum = 0;
	for (long i = 0; i < reads; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		off_t place = (off_t)(state % (st.st_size / 64)) * 64;
		if (plain) {
			if (pread(fileno(in), cell, 64, place) != 64)
				return 1;
		} else if (fseeko(in, place, SEEK_SET) || fread(cell, 64, 1, in) != 1) {
			return 1;
		}
		sum += cell[0];
	}
	printf("%llu\n", sum);
	return 0;
}
