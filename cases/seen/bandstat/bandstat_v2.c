/* bandstat: makes a vegetation index image (NDVI, one byte a pixel) from the
 * red and the near-infrared band of a scene that is stored band-interleaved by
 * pixel, takes single noisy pixels out with a 3x3 median and prints the mean. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    FILE *file;
    uint32_t width, height, bands;
};

enum { HEADER = 64, RED = 3, NIR = 7 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void scene_open(struct scene *s, const char *path) {
    unsigned char h[HEADER];
    if (!(s->file = fopen(path, "rb"))) die(path);
    if (fread(h, HEADER, 1, s->file) != 1 || memcmp(h, "BIPSCENE", 8)) die("header");
    memcpy(&s->width, h + 8, 4);
    memcpy(&s->height, h + 12, 4);
    memcpy(&s->bands, h + 16, 4);
}

/* The next row of the scene: all bands of all its pixels. */
static void scene_row(struct scene *s, uint16_t *row) {
    size_t n = (size_t)s->width * s->bands;
    if (fread(row, 2, n, s->file) != n) die("read");
}

static int by_value(const void *a, const void *b) {
    return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* The median of the 3x3 pixels around (x, y), fewer at the borders. */
static unsigned char median(const unsigned char *img, int width, int height, int x, int y) {
    unsigned char near[9];
    int n = 0;
    for (int v = y - 1; v <= y + 1; v++)
        for (int u = x - 1; u <= x + 1; u++)
            if (u >= 0 && v >= 0 && u < width && v < height) near[n++] = img[(size_t)v * width + u];
    qsort(near, n, 1, by_value);
    return near[n / 2];
}

int main(int argc, char **argv) {
    struct scene s;
    if (argc != 3) return 2;
    scene_open(&s, argv[1]);
    FILE *out = fopen(argv[2], "wb");
    if (!out) die(argv[2]);
    fprintf(out, "P5\n%u %u\n255\n", s.width, s.height);

    double sum = 0;
    unsigned char *ndvi_image = malloc((size_t)s.width * s.height);
    if (!ndvi_image) die("malloc");
    uint16_t *row = malloc(2 * (size_t)s.width * s.bands);
    if (!row) die("malloc");
    for (uint32_t y = 0; y < s.height; y++) {
        scene_row(&s, row);
        for (uint32_t x = 0; x < s.width; x++) {
            int red = row[(size_t)x * s.bands + RED];
            int nir = row[(size_t)x * s.bands + NIR];
            double ndvi = red + nir ? (double)(nir - red) / (nir + red) : 0;
            ndvi_image[(size_t)y * s.width + x] = (int)((ndvi + 1) * 127.5);
        }
    }
    free(row);
    for (uint32_t y = 0; y < s.height; y++)
        for (uint32_t x = 0; x < s.width; x++) {
            int m = median(ndvi_image, s.width, s.height, x, y);
            putc(m, out);
            sum += m;
        }
    free(ndvi_image);
    if (fclose(out)) die(argv[2]);
    printf("%ux%u mean %.6f\n", s.width, s.height, sum / s.width / s.height);
    return 0;
}
