/* Word count of a mapped text. */
#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLOTS (1 << 18)
static struct { const char *w; uint32_t len, n; } tab[SLOTS];

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) { perror(argv[argc - 1]); return 1; }
    const char *m = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (m == MAP_FAILED) { perror("mmap"); return 1; }
    madvise((void *)m, st.st_size, MADV_SEQUENTIAL);
    const char *p = m, *end = m + st.st_size;
    uint64_t words = 0, different = 0;
    while (p < end) {
        while (p < end && !isalpha((unsigned char)*p)) p++;
        const char *s = p;
        uint64_t h = 0;
        while (p < end && isalpha((unsigned char)*p)) h = (h ^ tolower((unsigned char)*p++)) * 1099511628211ull;
        if (p == s) break;
        uint32_t len = p - s, i = (h ^ h >> 29) & (SLOTS - 1);
        while (tab[i].w && (tab[i].len != len || memcmp(tab[i].w, s, len))) i = (i + 1) & (SLOTS - 1);
        if (!tab[i].w) { tab[i].w = s; tab[i].len = len; different++; }
        tab[i].n++;
        words++;
    }
    uint32_t top = 0;
    for (int i = 0; i < SLOTS; i++) if (tab[i].n > top) top = tab[i].n;
    printf("%lu %lu %u\n", words, different, top);
    return 0;
}
