/* Opens an index segment and answers queries on it.
 *
 * searcher SEGMENT QUERIES
 *
 * A segment is mapped. Opening it checks every block's CRC and builds the
 * table of block maxima (highest impact, number of documents) by which a query
 * skips blocks; then each query looks at the few blocks that can still win. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct trailer {
    char magic[8];
    uint32_t block_size;
    uint32_t blocks;
};

struct block_max {
    uint32_t docs;   /* distance from the first to the last document */
    uint32_t impact; /* highest score in the block */
};

struct segment {
    const uint8_t *map;
    size_t size;
    uint32_t block_size, blocks;
    const uint32_t *crcs;
    struct block_max *maxima;
};

static uint32_t crc_table[256];

static void crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? (c >> 1) ^ 0xedb88320u : c >> 1;
        crc_table[i] = c;
    }
}

static uint32_t crc32(const uint8_t *p, size_t n)
{
    uint32_t c = ~0u;
    while (n--)
        c = crc_table[(c ^ *p++) & 255] ^ (c >> 8);
    return ~c;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Term frequency saturates, as in BM25; the delta stands in for the norm. */
static uint32_t impact(uint8_t delta, uint8_t tf)
{
    return (uint32_t)tf * 2200u / ((uint32_t)tf + 12u + delta / 16u);
}

static struct segment *segment_open(const char *path)
{
    struct segment *s = calloc(1, sizeof *s);
    struct stat st;
    struct trailer t;
    int fd = open(path, O_RDONLY);
    if (!s || fd < 0 || fstat(fd, &st) < 0)
        die(path);
    if (pread(fd, &t, sizeof t, st.st_size - sizeof t) != sizeof t || memcmp(t.magic, "SEGMENT1", 8)) {
        fprintf(stderr, "%s: not a segment\n", path);
        exit(1);
    }
    s->size = st.st_size;
    s->block_size = t.block_size;
    s->blocks = t.blocks;
    s->map = mmap(NULL, s->size, PROT_READ, MAP_SHARED, fd, 0);
    if (s->map == MAP_FAILED)
        die("mmap");
    close(fd);
    /* The check below walks the whole segment once, from front to back. */
    if (madvise((void *)s->map, s->size, MADV_SEQUENTIAL) < 0)
        die("madvise");
    s->crcs = (const uint32_t *)(s->map + (size_t)s->block_size * s->blocks);
    s->maxima = calloc(s->blocks, sizeof *s->maxima);
    if (!s->maxima)
        die("calloc");

    for (uint32_t b = 0; b < s->blocks; b++) {
        const uint8_t *p = s->map + (size_t)b * s->block_size;
        if (crc32(p, s->block_size) != s->crcs[b]) {
            fprintf(stderr, "%s: block %u is damaged\n", path, b);
            exit(1);
        }
        struct block_max *m = &s->maxima[b];
        for (uint32_t i = 0; i < s->block_size; i += 2) {
            uint32_t score = impact(p[i], p[i + 1]);
            m->docs += p[i] + 1u;
            if (score > m->impact)
                m->impact = score;
        }
    }
    /* Queries jump about: without this every one would read 128 KiB ahead. */
    if (madvise((void *)s->map, s->size, MADV_RANDOM) < 0)
        die("madvise");
    return s;
}

/* A term owns eight blocks somewhere in the segment. */
static uint64_t query(const struct segment *s, uint64_t term)
{
    uint32_t best = 0;
    uint64_t best_doc = 0;
    for (uint64_t k = 0; k < 8; k++) {
        uint32_t b = (uint32_t)((term * 0x9e3779b97f4a7c15ull + k * 0x2545f4914f6cdd1dull) >> 33) % s->blocks;
        if (s->maxima[b].impact <= best)
            continue;
        const uint8_t *p = s->map + (size_t)b * s->block_size;
        uint64_t doc = 0;
        for (uint32_t i = 0; i < s->block_size; i += 2) {
            uint32_t score = impact(p[i], p[i + 1]);
            doc += p[i] + 1u;
            if (score > best) {
                best = score;
                best_doc = ((uint64_t)b << 24) + doc;
            }
        }
    }
    return best_doc * 4096 + best;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: searcher SEGMENT QUERIES\n");
        return 2;
    }
    crc_init();
    struct segment *s = segment_open(argv[1]);
    uint64_t docs = 0, sum = 0;
    for (uint32_t b = 0; b < s->blocks; b++)
        docs += s->maxima[b].docs;
    long queries = strtol(argv[2], NULL, 10);
    for (long q = 0; q < queries; q++)
        sum = sum * 1000003u + query(s, (uint64_t)q);
    printf("%u blocks, %llu documents, %ld queries, %016llx\n", s->blocks, (unsigned long long)docs, queries,
           (unsigned long long)sum);
    return 0;
}
