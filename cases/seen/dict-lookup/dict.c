/* Looks the words of a text up in a sorted dictionary file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY 28
#define KEY 12

struct dict {
    const char *map;
    size_t size;
};

static int dict_open(struct dict *d, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st)) {
        close(fd);
        return -1;
    }
    d->size = st.st_size;
    d->map = mmap(NULL, d->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return d->map == MAP_FAILED ? -1 : 0;
}

static void dict_close(struct dict *d)
{
    munmap((void *)d->map, d->size);
}

static long dict_find(const struct dict *d, const char *word)
{
    size_t lo = 0, hi = d->size / ENTRY;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = memcmp(word, d->map + mid * ENTRY, KEY);
        if (c == 0)
            return strtol(d->map + mid * ENTRY + 18, NULL, 10);
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return -1;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int keep_open = !strcmp(argv[1], "repaired");
    char path[4096], word[64];
    struct dict d;
    snprintf(path, sizeof path, "%s/words.txt", argv[2]);
    FILE *words = fopen(path, "r");
    snprintf(path, sizeof path, "%s/dict.dat", argv[2]);
    if (!words || (keep_open && dict_open(&d, path))) {
        perror(path);
        return 1;
    }
    long n = 0, found = 0, sum = 0;
    while (fscanf(words, "%63s", word) == 1) {
        if (!keep_open && dict_open(&d, path)) {
            perror(path);
            return 1;
        }
        long v = dict_find(&d, word);
        if (!keep_open)
            dict_close(&d);
        if (v >= 0) {
            found++;
            sum += v;
        }
        n++;
    }
    printf("%ld words, %ld found, %ld\n", n, found, sum);
    return 0;
}
