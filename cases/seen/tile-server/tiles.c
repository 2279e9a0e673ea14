/* Serves map tiles out of one big pyramid file (here: to a checksum). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TILE 4096
#define AHEAD 64

struct pyramid {
    const unsigned char *map;
    size_t size;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static struct pyramid pyramid_open(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        die(path);
    struct pyramid p = { NULL, st.st_size };
    p.map = mmap(NULL, p.size, PROT_READ, MAP_SHARED, fd, 0);
    if (p.map == MAP_FAILED)
        die("mmap");
    close(fd);
    return p;
}

static void send_tile(const struct pyramid *p, uint32_t tile, uint64_t *sum)
{
    unsigned char body[TILE];
    memcpy(body, p->map + (size_t)tile * TILE, TILE);
    for (int i = 0; i < TILE; i++)
        *sum = *sum * 31 + body[i];
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int repaired = !strcmp(argv[1], "repaired");
    char path[4096];
    snprintf(path, sizeof path, "%s/tiles.bin", argv[2]);
    struct pyramid p = pyramid_open(path);
    snprintf(path, sizeof path, "%s/requests.bin", argv[2]);
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    madvise((void *)p.map, p.size, MADV_RANDOM);    /* tiles are asked for in any order */

    uint32_t want[AHEAD];
    uint64_t sum = 0;
    long served = 0;
    size_t n;
    while ((n = fread(want, sizeof want[0], AHEAD, f)) > 0) {
        if (repaired)
            for (size_t i = 0; i < n; i++)
                madvise((void *)(p.map + (size_t)want[i] * TILE), TILE, MADV_WILLNEED);
        for (size_t i = 0; i < n; i++)
            send_tile(&p, want[i], &sum);
        served += n;
    }
    printf("%ld tiles %016llx\n", served, (unsigned long long)sum);
    return 0;
}
