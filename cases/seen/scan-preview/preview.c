/* A grey preview, a sixteenth of the size, of a 24-bit bitmap. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCALE 16
#define STRIDE 4 /* every fourth pixel of a row is enough */

struct bitmap {
    int fd;
    uint32_t start;
    int32_t width, height;
    size_t row_bytes;
    int strip_rows; /* rows that one read fetches */
    int strip;      /* the strip in memory, -1 for none */
    unsigned char *rows;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void open_bitmap(struct bitmap *b, const char *path, int strip_rows)
{
    unsigned char head[54];
    b->fd = open(path, O_RDONLY);
    if (b->fd < 0 || pread(b->fd, head, sizeof head, 0) != sizeof head)
        die(path);
    memcpy(&b->start, head + 10, 4);
    memcpy(&b->width, head + 18, 4);
    memcpy(&b->height, head + 22, 4);
    b->row_bytes = ((size_t)b->width * 3 + 3) & ~(size_t)3;
    b->strip_rows = strip_rows;
    b->strip = -1;
    b->rows = malloc(b->row_bytes * strip_rows);
}

/* Row y, counted from the top as people do. */
static const unsigned char *row(struct bitmap *b, int y)
{
    int stored = b->height - 1 - y;
    int strip = stored / b->strip_rows;
    if (strip != b->strip) {
        int first = strip * b->strip_rows, n = b->height - first;
        if (n > b->strip_rows)
            n = b->strip_rows;
        size_t want = n * b->row_bytes;
        if (pread(b->fd, b->rows, want, b->start + (off_t)first * b->row_bytes) != (ssize_t)want)
            die("pread");
        b->strip = strip;
    }
    return b->rows + (stored % b->strip_rows) * b->row_bytes;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char path[4096];
    struct bitmap b;
    snprintf(path, sizeof path, "%s/scan.bmp", argv[2]);
    open_bitmap(&b, path, strcmp(argv[1], "repaired") ? 1 : 256);

    int w = b.width / SCALE, h = b.height / SCALE;
    uint32_t *sum = calloc(w, sizeof *sum);
    unsigned char *out = malloc((size_t)w * h);
    for (int y = 0; y < h * SCALE; y++) {
        const unsigned char *p = row(&b, y);
        for (int x = 0; x < w; x++)
            for (int i = 0; i < SCALE; i += STRIDE, p += 3 * STRIDE)
                sum[x] += p[1]; /* green stands for grey */
        if (y % SCALE == SCALE - 1)
            for (int x = 0; x < w; x++) {
                out[(y / SCALE) * w + x] = sum[x] / (SCALE / STRIDE * SCALE);
                sum[x] = 0;
            }
    }
    uint32_t check = 0;
    for (long i = 0; i < (long)w * h; i++)
        check = check * 31 + out[i];
    snprintf(path, sizeof path, "%s/preview.pgm", argv[2]);
    FILE *f = fopen(path, "wb");
    if (!f)
        die(path);
    fprintf(f, "P5\n%d %d\n255\n", w, h);
    fwrite(out, 1, (size_t)w * h, f);
    if (fclose(f))
        die(path);
    printf("%d x %d, check %08x\n", w, h, check);
    return 0;
}
