/* gauge_series GRID LAT0 LAT1 LON0 LON1: rain statistics of every cell of a catchment box. */
#include "grid.h"

int main(int argc, char **argv)
{
    struct grid g;
    if (argc != 6) {
        fprintf(stderr, "usage: gauge_series GRID LAT0 LAT1 LON0 LON1\n");
        return 2;
    }
    grid_open(&g, argv[1]);
    struct box b = parse_box(argv);
    uint32_t rows = b.lat1 - b.lat0, cols = b.lon1 - b.lon0;
    struct series *all = calloc((size_t)rows * cols, sizeof *all);
    float *band = malloc(sizeof(float) * rows * g.lon);
    if (!all || !band)
        die("memory");
    for (uint32_t step = 0; step < g.steps; step++) {
        /* all rows of the box in one piece, once per step */
        long at = HEADER_BYTES + 4L * ((long)step * g.lat + b.lat0) * g.lon;
        size_t want = (size_t)rows * g.lon;
        if (fseek(g.f, at, SEEK_SET) || fread(band, sizeof *band, want, g.f) != want)
            die("grid field");
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t c = 0; c < cols; c++)
                series_add(&all[r * cols + c], band[r * g.lon + b.lon0 + c]);
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            series_print(b.lat0 + r, b.lon0 + c, &all[r * cols + c]);
    free(all);
    free(band);
    fclose(g.f);
    return 0;
}
