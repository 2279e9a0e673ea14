/* Counts web hits by country with a table of address ranges. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint32_t first, last, country;
};

struct table {
    struct range *r;
    long n;
};

static struct table load_table(const char *path)
{
    struct table t;
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    t.n = size / sizeof *t.r;
    t.r = malloc(size);
    if (fread(t.r, sizeof *t.r, t.n, f) != (size_t)t.n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return t;
}

static uint32_t find(const struct table *t, uint32_t ip)
{
    long lo = 0, hi = t->n - 1;
    while (lo <= hi) {
        long mid = (lo + hi) / 2;
        if (ip < t->r[mid].first)
            hi = mid - 1;
        else if (ip > t->r[mid].last)
            lo = mid + 1;
        else
            return t->r[mid].country;
    }
    return 0;
}

/* The library's convenience call: self-contained, safe to use from anywhere. */
static uint32_t country_of(const char *path, uint32_t ip)
{
    struct table t = load_table(path);
    uint32_t c = find(&t, ip);
    free(t.r);
    return c;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char path[4096];
    snprintf(path, sizeof path, "%s/hits.txt", argv[2]);
    FILE *hits = fopen(path, "r");
    if (!hits) {
        perror(path);
        return 1;
    }
    snprintf(path, sizeof path, "%s/ranges.bin", argv[2]);
    struct table t = { 0 };
    if (!strcmp(argv[1], "repaired"))
        t = load_table(path);

    long count[256] = { 0 }, n = 0;
    unsigned ip;
    while (fscanf(hits, "%u", &ip) == 1) {
        count[t.r ? find(&t, ip) : country_of(path, ip)]++;
        n++;
    }
    unsigned long mix = 0;
    for (int i = 0; i < 256; i++)
        mix = mix * 1000003 + count[i];
    printf("%ld hits %016lx\n", n, mix);
    return 0;
}
