#include "archive.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct record) == 512, "record layout");

int archive_open(struct archive *a, const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        perror(path);
        return -1;
    }
    a->bytes = st.st_size;
    a->n = a->bytes / sizeof(struct record);
    a->rec = mmap(NULL, a->bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (a->rec == MAP_FAILED) {
        perror("mmap");
        return -1;
    }
#ifndef PLAIN_MAP
    /* archive_find() jumps about in the file: no read-ahead, it would only fetch what nobody wants */
    madvise((void *)a->rec, a->bytes, MADV_RANDOM);
#endif
    return 0;
}

size_t archive_find(const struct archive *a, double t)
{
    size_t lo = 0, hi = a->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a->rec[mid].start < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void archive_close(struct archive *a)
{
    munmap((void *)a->rec, a->bytes);
}
