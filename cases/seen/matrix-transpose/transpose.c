/* Transposes a square matrix of floats from file to file, in little memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BAND 128

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void by_element(int in, int out, size_t n)
{
    float *row = malloc(n * sizeof *row);
    for (size_t i = 0; i < n; i++) {
        if (read(in, row, n * sizeof *row) != (ssize_t)(n * sizeof *row))
            die("read");
        for (size_t j = 0; j < n; j++)
            if (pwrite(out, &row[j], sizeof *row, (j * n + i) * sizeof *row) != sizeof *row)
                die("write");
    }
    free(row);
}

static void by_band(int in, int out, size_t n)
{
    float *rows = malloc(BAND * n * sizeof *rows);
    float piece[BAND];
    for (size_t i = 0; i < n; i += BAND) {
        size_t h = n - i < BAND ? n - i : BAND;
        if (read(in, rows, h * n * sizeof *rows) != (ssize_t)(h * n * sizeof *rows))
            die("read");
        for (size_t j = 0; j < n; j++) {
            for (size_t k = 0; k < h; k++)
                piece[k] = rows[k * n + j];
            if (pwrite(out, piece, h * sizeof *rows, (j * n + i) * sizeof *rows) != (ssize_t)(h * sizeof *rows))
                die("write");
        }
    }
    free(rows);
}

static uint64_t checksum(int fd, size_t size)
{
    unsigned char buf[65536];
    uint64_t h = 14695981039346656037u;
    for (size_t at = 0; at < size;) {
        ssize_t n = pread(fd, buf, sizeof buf, at);
        if (n <= 0)
            die("read back");
        for (ssize_t i = 0; i < n; i++)
            h = (h ^ buf[i]) * 1099511628211u;
        at += n;
    }
    return h;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/matrix.f32", argv[2]);
    int in = open(path, O_RDONLY);
    if (in < 0 || fstat(in, &st))
        die(path);
    size_t n = (size_t)llround(sqrt((double)(st.st_size / sizeof(float))));
    snprintf(path, sizeof path, "%s/transposed.f32", argv[2]);
    int out = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (out < 0 || ftruncate(out, st.st_size))
        die(path);
    (strcmp(argv[1], "repaired") ? by_element : by_band)(in, out, n);
    printf("%zu x %zu %016llx\n", n, n, (unsigned long long)checksum(out, st.st_size));
    return 0;
}
