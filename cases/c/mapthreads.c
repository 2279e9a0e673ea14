/* Four threads take, fill and give back memory of 8 MiB N times each: `map` from the kernel each time, all at once, where
 * each waits for the others' changes to the address space, or `keep` memory taken once. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREADS 4
#define SPACE (8 * 1024 * 1024)

static long count;
static int keep;

static unsigned char *take(void)
{
	void *space = mmap(NULL, SPACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return space == MAP_FAILED ? NULL : space;
}

static void *work(void *unused)
{
	unsigned char *space = keep ? take() : NULL;
	for (long i = 0; i < count; i++) {
		if (!keep)
			space = take();
		if (!space)
			return (void *)1;
		for (int at = 0; at < SPACE; at += 4096)
			space[at] = (unsigned char)i;
		if (!keep)
			munmap(space, SPACE);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	if (argc != 3)
		return 2;
	count = atol(argv[1]);
	keep = !strcmp(argv[2], "keep");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
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
