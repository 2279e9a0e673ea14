/* Query stage over a mapped posting file of 4 KiB blocks. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096
#define QUERIES 3800

static double score(const unsigned char *p)
{
    double best = 0;
    for (int round = 1; round <= 22; round++) {
        uint32_t doc = 0;
        double s = 0;
        for (int i = 0; i + 3 < BLOCK; i += 3) {
            doc += p[i] | (p[i + 1] & 15) << 8;
            double tf = 1 + (p[i + 2] & 31), len = 50 + doc % 777;
            s += tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len / (100.0 * round)));
        }
        if (s > best) best = s;
    }
    return best;
}

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) { perror(argv[1]); return 1; }
    unsigned char *m = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED) { perror("mmap"); return 1; }
    if (argc > 2) madvise(m, st.st_size, MADV_RANDOM);
    uint64_t blocks = st.st_size / BLOCK, x = 88172645463325252ull;
    double sum = 0;
    for (int q = 0; q < QUERIES; q++) {
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        sum += score(m + x % blocks * BLOCK);
    }
    printf("%d %.3f\n", QUERIES, sum);
    return 0;
}
