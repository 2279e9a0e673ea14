/* vec-rerank: re-scores the candidates of an approximate nearest-neighbour
 * search with the full int8 vectors, which stay on disk.
 *
 *   vec-rerank vectors.i8 candidates.bin
 *
 * Prints for every query the three best rows with their scores. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER 4096
#define TOP 3

struct table {
    int fd;
    uint32_t dim;
    uint64_t rows;
};

struct hit {
    uint32_t id;
    int32_t score;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void open_table(struct table *t, const char *path)
{
    unsigned char head[20];

    t->fd = open(path, O_RDONLY);
    if (t->fd < 0)
        die(path);
    if (pread(t->fd, head, sizeof head, 0) != sizeof head || memcmp(head, "VEC8", 4)) {
        fprintf(stderr, "%s: not a vector table\n", path);
        exit(1);
    }
    memcpy(&t->dim, head + 8, 4);
    memcpy(&t->rows, head + 12, 8);
}

static void fetch_row(const struct table *t, uint32_t id, int8_t *row)
{
    off_t at = HEADER + (off_t)id * t->dim;

    if (id >= t->rows || pread(t->fd, row, t->dim, at) != (ssize_t)t->dim) {
        fprintf(stderr, "row %u cannot be read\n", id);
        exit(1);
    }
}

/* All rows of a query are known before the first is needed: ask for them
 * together, so that the device works on many at a time. */
static void announce(const struct table *t, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        posix_fadvise(t->fd, HEADER + (off_t)ids[i] * t->dim, t->dim, POSIX_FADV_WILLNEED);
}

static int32_t dot(const int8_t *a, const int8_t *b, uint32_t n)
{
    int32_t s = 0;

    for (uint32_t i = 0; i < n; i++)
        s += (int32_t)a[i] * b[i];
    return s;
}

static int by_score(const void *pa, const void *pb)
{
    const struct hit *a = pa, *b = pb;

    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    return a->id < b->id ? -1 : a->id > b->id;
}

int main(int argc, char **argv)
{
    struct table t;
    uint32_t queries, per_query;
    FILE *in;

    if (argc != 3) {
        fprintf(stderr, "usage: vec-rerank VECTORS CANDIDATES\n");
        return 2;
    }
    open_table(&t, argv[1]);
    in = fopen(argv[2], "rb");
    if (!in)
        die(argv[2]);
    if (fread(&queries, 4, 1, in) != 1 || fread(&per_query, 4, 1, in) != 1)
        die("candidates");

    int8_t *query = malloc(t.dim), *row = malloc(t.dim);
    uint32_t *ids = malloc(per_query * sizeof *ids);
    struct hit *hits = malloc(per_query * sizeof *hits);

    for (uint32_t q = 0; q < queries; q++) {
        if (fread(query, t.dim, 1, in) != 1 || fread(ids, 4, per_query, in) != per_query)
            die("candidates");
        announce(&t, ids, per_query);
        for (uint32_t i = 0; i < per_query; i++) {
            fetch_row(&t, ids[i], row);
            hits[i].id = ids[i];
            hits[i].score = dot(query, row, t.dim);
        }
        qsort(hits, per_query, sizeof *hits, by_score);
        printf("query %u:", q);
        for (uint32_t i = 0; i < TOP && i < per_query; i++)
            printf(" %u=%d", hits[i].id, hits[i].score);
        putchar('\n');
    }
    fclose(in);
    close(t.fd);
    return 0;
}
