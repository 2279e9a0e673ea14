/* gauge_series GRID LAT0 LAT1 LON0 LON1: rain statistics of every cell of a catchment box. */
#include "grid.h"

static float grid_value(struct grid *g, uint32_t step, uint32_t la, uint32_t lo)
{
    float v;
    long at = HEADER_BYTES + 4L * (((long)step * g->lat + la) * g->lon + lo);
    if (fseek(g->f, at, SEEK_SET) || fread(&v, sizeof v, 1, g->f) != 1)
        die("grid value");
    return v;
}

int main(int argc, char **argv)
{
    struct grid g;
    if (argc != 6) {
        fprintf(stderr, "usage: gauge_series GRID LAT0 LAT1 LON0 LON1\n");
        return 2;
    }
    grid_open(&g, argv[1]);
    struct box b = parse_box(argv);
    for (uint32_t la = b.lat0; la < b.lat1; la++)
        for (uint32_t lo = b.lon0; lo < b.lon1; lo++) {
            struct series s = { 0 };
            for (uint32_t step = 0; step < g.steps; step++)
                series_add(&s, grid_value(&g, step, la, lo));
            series_print(la, lo, &s);
        }
    fclose(g.f);
    return 0;
}
