#ifndef ARCHIVE_H
#define ARCHIVE_H
#include <stddef.h>
#include <stdint.h>

#define SAMPLES 224

struct record {            /* 512 bytes, as the recorder writes them */
    char seq[6];
    char station[5];
    char pad[5];
    double start;          /* seconds since midnight */
    uint16_t nsamples;
    uint16_t channel;
    char reserved[36];
    int16_t sample[SAMPLES];
};

struct archive {
    const struct record *rec;
    size_t n;
    size_t bytes;
};

int archive_open(struct archive *a, const char *path);
/* first record that does not start before t; the archive is in the order of time */
size_t archive_find(const struct archive *a, double t);
void archive_close(struct archive *a);
#endif
