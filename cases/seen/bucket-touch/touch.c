/* Stores last-seen records in a hash file of 4 KiB buckets with 64 slots each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDS 30000
#define SLOT 64
#define PIECE (1 << 20)

struct rec { uint64_t at; char body[SLOT]; };
static struct rec recs[RECORDS];

static void die(const char *w) { perror(w); exit(1); }
static int by_place(const void *a, const void *b)
{
    const struct rec *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

int main(int argc, char **argv)
{
    int sorted = argc > 2;
    int fd = open(argv[1], O_RDWR);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) die(argv[1]);
    uint64_t slots = st.st_size / SLOT, sum = 0;
    for (int i = 0; i < RECORDS; i++) {
        uint64_t h = i * 0x9E3779B97F4A7C15ull;
        for (int k = 0; k < 1500; k++) { h ^= h >> 31; h *= 0xBF58476D1CE4E5B9ull; h ^= h >> 27; h *= 0x94D049BB133111EBull; } /* key stretching */
        recs[i].at = h % slots * SLOT;
        memset(recs[i].body, 0, SLOT);
        snprintf(recs[i].body, SLOT, "user%d last seen 2024-05-12 08:%02d from 10.0.%d.1", i, i % 60, i % 256);
        sum += h;
    }
    if (sorted) qsort(recs, RECORDS, sizeof *recs, by_place);
    static char piece[PIECE];
    uint64_t loaded = 0;
    for (int i = 0; i < RECORDS; i++) {
        while (sorted && loaded <= recs[i].at) {
            if (pread(fd, piece, PIECE, loaded) < 0) die("pread");
            loaded += PIECE;
        }
        if (pwrite(fd, recs[i].body, SLOT, recs[i].at) != SLOT) die("pwrite");
    }
    close(fd);
    printf("%d %016lx\n", RECORDS, sum);
    return 0;
}
