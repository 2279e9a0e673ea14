/* gridclim: monthly means, extremes and heat-wave days of a gridded temperature archive.
 *
 * The archive is mapped; point queries (-p LAT,LON) jump about in it, the climatology
 * walks it from front to back.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CLIM_ADVICE
#define CLIM_ADVICE MADV_RANDOM
#endif

struct header {
    char magic[4];
    int32_t days, lats, lons;
};

struct archive {
    const struct header *h;
    const int16_t *data;
    size_t bytes;
};

static void die(const char *what)
{
    fprintf(stderr, "gridclim: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct archive open_archive(const char *path)
{
    struct archive a;
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0)
        die(path);
    a.bytes = st.st_size;
    void *map = mmap(NULL, a.bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        die("mmap");
    close(fd);
    /* point queries read single cells: reading ahead only fills memory */
    if (madvise(map, a.bytes, CLIM_ADVICE) < 0)
        die("madvise");
    a.h = map;
    a.data = (const int16_t *)((const char *)map + sizeof(struct header));
    if (memcmp(a.h->magic, "GRD1", 4) != 0 ||
        sizeof(struct header) + 2ul * a.h->days * a.h->lats * a.h->lons > a.bytes) {
        fprintf(stderr, "gridclim: %s is not an archive\n", path);
        exit(1);
    }
    return a;
}

static double celsius(double v) { return v / 100.0 + 200.0 - 273.15; }

static void point(const struct archive *a, int lat, int lon)
{
    size_t field = (size_t)a->h->lats * a->h->lons;
    for (int day = 0; day < a->h->days; day += 30)
        printf("day %3d  %.2f\n", day, celsius(a->data[day * field + (size_t)lat * a->h->lons + lon]));
}

static void climatology(const struct archive *a)
{
    int lats = a->h->lats, lons = a->h->lons;
    size_t field = (size_t)lats * lons;
    uint8_t *run = calloc(field, 1);
    double *weight = malloc(lats * sizeof *weight);
    if (!run || !weight)
        die("memory");
    for (int lat = 0; lat < lats; lat++)
        weight[lat] = cos((lat - lats / 2) * M_PI / lats);
    double sum = 0, mass = 0;
    int16_t low = INT16_MAX, high = INT16_MIN;
    long waves = 0;
    for (int day = 0; day < a->h->days; day++) {
        const int16_t *f = a->data + day * field;
        for (int lat = 0; lat < lats; lat++) {
            long row = 0;
            for (int lon = 0; lon < lons; lon++) {
                int16_t v = *f++;
                size_t cell = (size_t)lat * lons + lon;
                row += v;
                if (v < low)
                    low = v;
                if (v > high)
                    high = v;
                run[cell] = v > 10000 ? (run[cell] < 255 ? run[cell] + 1 : 255) : 0;
                waves += run[cell] == 5;
            }
            sum += weight[lat] * row;
            mass += weight[lat] * lons;
        }
        if (day % 30 == 29 || day == a->h->days - 1) {
            printf("month %2d  mean %7.3f  low %7.2f  high %7.2f  heat waves begun %ld\n", day / 30 + 1,
                   celsius(sum / mass), celsius(low), celsius(high), waves);
            sum = mass = 0;
            low = INT16_MAX;
            high = INT16_MIN;
            waves = 0;
        }
    }
    free(run);
    free(weight);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: gridclim ARCHIVE [-p LAT,LON]\n");
        return 2;
    }
    struct archive a = open_archive(argv[1]);
    int lat, lon;
    if (argc > 3 && strcmp(argv[2], "-p") == 0 && sscanf(argv[3], "%d,%d", &lat, &lon) == 2)
        point(&a, lat, lon);
    else
        climatology(&a);
    munmap((void *)a.h, a.bytes);
    return 0;
}
