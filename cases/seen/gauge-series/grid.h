/* The rain.grid format: header, then `steps` fields of lat x lon float32. */
#ifndef GRID_H
#define GRID_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 64

struct grid {
    FILE *f;
    uint32_t steps, lat, lon;
};

struct box {
    uint32_t lat0, lat1, lon0, lon1; /* half open */
};

struct series {
    double total, peak;
    uint32_t wet_days, longest_dry, dry;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void grid_open(struct grid *g, const char *path)
{
    unsigned char head[HEADER_BYTES];
    g->f = fopen(path, "rb");
    if (!g->f)
        die(path);
    if (fread(head, 1, sizeof head, g->f) != sizeof head || memcmp(head, "RGRD", 4))
        die("not a grid");
    memcpy(&g->steps, head + 4, 4);
    memcpy(&g->lat, head + 8, 4);
    memcpy(&g->lon, head + 12, 4);
}

static void series_add(struct series *s, float mm)
{
    s->total += mm;
    if (mm > s->peak)
        s->peak = mm;
    if (mm >= 1.0f) {
        s->wet_days++;
        s->dry = 0;
    } else if (++s->dry > s->longest_dry) {
        s->longest_dry = s->dry;
    }
}

static void series_print(uint32_t la, uint32_t lo, const struct series *s)
{
    printf("%3u %3u total %.3f peak %.3f wet %u dry %u\n", la, lo, s->total, s->peak,
           s->wet_days, s->longest_dry);
}

static struct box parse_box(char **argv)
{
    struct box b = { atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]) };
    return b;
}
#endif
