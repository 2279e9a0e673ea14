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

/* One value: the pixel (x, y) of a band. */
static uint16_t scene_value(struct scene *s, uint32_t x, uint32_t y, uint32_t band) {
    uint16_t v;
    long at = HEADER + 2L * (((long)y * s->width + x) * s->bands + band);
    if (fseek(s->file, at, SEEK_SET) || fread(&v, 2, 1, s->file) != 1) die("read");
    return v;
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
    for (uint32_t y = 0; y < s.height; y++)
        for (uint32_t x = 0; x < s.width; x++) {
            int red = scene_value(&s, x, y, RED);
            int nir = scene_value(&s, x, y, NIR);
            double ndvi = red + nir ? (double)(nir - red) / (nir + red) : 0;
            ndvi_image[(size_t)y * s.width + x] = (int)((ndvi + 1) * 127.5);
        }
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
