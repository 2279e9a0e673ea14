/* Row means of a dataset that is stored in chunks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_ROWS 256
#define CHUNK_COLS 1024
#define BANDS 2
#define ACROSS 24
#define CHUNK_BYTES ((size_t)CHUNK_ROWS * CHUNK_COLS * sizeof(float))

struct cache {
    int slots;
    struct {
        int chunk;
        float *data;
    } slot[ACROSS];
};

static int fd;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The cache is direct-mapped, as small caches are. */
static const float *get_chunk(struct cache *c, int chunk)
{
    int s = chunk % c->slots;
    if (!c->slot[s].data) {
        c->slot[s].data = malloc(CHUNK_BYTES);
        c->slot[s].chunk = -1;
    }
    if (c->slot[s].chunk != chunk) {
        if (pread(fd, c->slot[s].data, CHUNK_BYTES, (off_t)chunk * CHUNK_BYTES) != (ssize_t)CHUNK_BYTES)
            die("pread");
        c->slot[s].chunk = chunk;
    }
    return c->slot[s].data;
}

static void read_row(struct cache *c, int row, float *to)
{
    for (int i = 0; i < ACROSS; i++) {
        const float *chunk = get_chunk(c, row / CHUNK_ROWS * ACROSS + i);
        memcpy(to + i * CHUNK_COLS, chunk + (row % CHUNK_ROWS) * CHUNK_COLS, CHUNK_COLS * sizeof(float));
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    static struct cache cache;
    static float row[ACROSS * CHUNK_COLS];
    char path[4096];
    cache.slots = strcmp(argv[1], "repaired") ? 1 : ACROSS;
    snprintf(path, sizeof path, "%s/dataset.chunks", argv[2]);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        die(path);
    double all = 0, most = 0;
    int which = 0;
    for (int y = 0; y < BANDS * CHUNK_ROWS; y++) {
        double sum = 0;
        read_row(&cache, y, row);
        for (int x = 0; x < ACROSS * CHUNK_COLS; x++)
            sum += row[x];
        all += sum;
        if (sum > most)
            most = sum, which = y;
    }
    printf("mean %.9f, greatest in row %d\n", all / (BANDS * CHUNK_ROWS) / (ACROSS * CHUNK_COLS), which);
    return 0;
}
