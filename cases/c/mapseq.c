/* Reads a cold mapped file from front to end: `random` tells the kernel not to read ahead, `sequential` to do so. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	struct stat st;
	if (argc != 3)
		return 2;
	int fd = open(argv[1], O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return 1;
	unsigned char *map = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	madvise(map, st.st_size, strcmp(argv[2], "random") ? MADV_SEQUENTIAL : MADV_RANDOM);
	unsigned long sum = 0;
	for (off_t i = 0; i < st.st_size; i += 4096)
		sum += map[i];
	printf("%lu\n", sum);
	return 0;
}
