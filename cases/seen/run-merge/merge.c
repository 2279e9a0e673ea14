/* The last pass of an external sort: merges the runs, counts distinct keys. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS 24
#define RECORD 128

struct run {
    int fd;
    unsigned char *buf;
    size_t have, at;
    uint64_t key;
    int ended;
};

static size_t buffer_size;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void advance(struct run *r)
{
    if (r->at == r->have) {
        ssize_t n = read(r->fd, r->buf, buffer_size);
        if (n < 0)
            die("read");
        r->have = n;
        r->at = 0;
        if (n == 0) {
            r->ended = 1;
            return;
        }
    }
    memcpy(&r->key, r->buf + r->at, 8);
    r->at += RECORD;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int repaired = !strcmp(argv[1], "repaired");
    static struct run run[RUNS];
    buffer_size = repaired ? 512 << 10 : 4096;
    for (int i = 0; i < RUNS; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/runs/%02d.run", argv[2], i);
        run[i].fd = open(path, O_RDONLY);
        if (run[i].fd < 0)
            die(path);
        if (!repaired) /* "we jump about between the files" */
            posix_fadvise(run[i].fd, 0, 0, POSIX_FADV_RANDOM);
        run[i].buf = malloc(buffer_size);
        advance(&run[i]);
    }
    uint64_t last = UINT64_MAX, check = 0;
    long records = 0, distinct = 0;
    for (;;) {
        struct run *least = NULL;
        for (int i = 0; i < RUNS; i++)
            if (!run[i].ended && (!least || run[i].key < least->key))
                least = &run[i];
        if (!least)
            break;
        if (least->key != last)
            distinct++;
        last = least->key;
        check = check * 31 + last;
        records++;
        advance(least);
    }
    printf("%ld records, %ld distinct, check %016llx\n", records, distinct, (unsigned long long)check);
    return 0;
}
