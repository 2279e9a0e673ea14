/* Multi-get against a value log: the index is in memory, the values are not. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_SIZE 1024
#define BATCH 128

static uint64_t *offsets;
static long nkeys;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void load_index(const char *dir)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/index.bin", dir);
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st))
        die(path);
    nkeys = st.st_size / sizeof *offsets;
    offsets = malloc(st.st_size);
    if (fread(offsets, sizeof *offsets, nkeys, f) != (size_t)nkeys)
        die("read index");
    fclose(f);
}

static uint64_t fnv(uint64_t h, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static uint64_t get(int fd, long key)
{
    unsigned char value[VALUE_SIZE];
    if (pread(fd, value, sizeof value, offsets[key]) != sizeof value)
        die("pread");
    return fnv(14695981039346656037u, value, sizeof value);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int prefetch = !strcmp(argv[1], "repaired");
    char path[4096];
    load_index(argv[2]);
    snprintf(path, sizeof path, "%s/values.log", argv[2]);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        die(path);
    snprintf(path, sizeof path, "%s/keys.txt", argv[2]);
    FILE *keys = fopen(path, "r");
    if (!keys)
        die(path);

    long batch[BATCH], done = 0;
    uint64_t sum = 0;
    int n;
    do {
        for (n = 0; n < BATCH && fscanf(keys, "%ld", &batch[n]) == 1; n++)
            if (prefetch)
                posix_fadvise(fd, offsets[batch[n]], VALUE_SIZE, POSIX_FADV_WILLNEED);
        for (int i = 0; i < n; i++)
            sum += get(fd, batch[i]);
        done += n;
    } while (n == BATCH);
    printf("%ld %016llx\n", done, (unsigned long long)sum);
    return 0;
}
