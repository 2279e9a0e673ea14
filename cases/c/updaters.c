/* Eight threads change N blocks of cold files each: 512 bytes of a block, all in one file, whose lock is held while the old
 * block is read; or whole blocks, each in a file of its own. Arguments: N, then one file or eight. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 8

static long count;
static int files;
static char **names;

static void *work(void *argument)
{
	long thread = (long)argument;
	char piece[4096];
	size_t bytes = files == 1 ? 512 : sizeof piece;
	off_t into = files == 1 ? 100 : 0;
	struct stat st;
	int fd = open(names[thread % files], O_WRONLY);
	if (fd < 0 || fstat(fd, &st))
		return (void *)1;
	memset(piece, 'u', sizeof piece);
	/* Blocks lie apart, and none is read twice. */
	off_t blocks = st.st_size / 4096;
	for (long i = 0; i < count; i++) {
		off_t block = files == 1 ? (i * THREADS + thread) * 2 % blocks : i * 8 % blocks;
		if (pwrite(fd, piece, bytes, block * 4096 + into) != (ssize_t)bytes)
			return (void *)1;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	if (argc < 3)
		return 2;
	count = atol(argv[1]);
	names = argv + 2;
	files = argc - 2;
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		if (failed)
			return 1;
	}
	printf("%ld\n", count * THREADS);
	return 0;
}
