/* Checks members of an archive against their CRCs with a pool of threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 12

struct member {
    uint64_t offset;
    uint32_t size, crc;
};

static struct member *toc;
static long members;
static FILE *archive;
static pthread_mutex_t archive_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_long next_member, good;
static _Atomic uint32_t mix;
static uint32_t table[256];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint32_t crc32(const unsigned char *p, size_t n)
{
    uint32_t c = 0xffffffffu;
    while (n--)
        c = table[(c ^ *p++) & 255] ^ (c >> 8);
    return ~c;
}

/* Threads share one handle, so seeking and reading must not be torn apart. */
static void read_member_locked(const struct member *m, unsigned char *buf)
{
    pthread_mutex_lock(&archive_lock);
    if (fseek(archive, m->offset, SEEK_SET) || fread(buf, 1, m->size, archive) != m->size)
        die("read");
    pthread_mutex_unlock(&archive_lock);
}

static void read_member(const struct member *m, unsigned char *buf)
{
    if (pread(fileno(archive), buf, m->size, m->offset) != (ssize_t)m->size)
        die("pread");
}

static void *worker(void *arg)
{
    void (*get)(const struct member *, unsigned char *) = arg ? read_member : read_member_locked;
    unsigned char *buf = malloc(1 << 16);
    long i;
    while ((i = atomic_fetch_add(&next_member, 1)) < members) {
        get(&toc[i], buf);
        uint32_t c = crc32(buf, toc[i].size);
        if (c == toc[i].crc)
            atomic_fetch_add(&good, 1);
        atomic_fetch_xor(&mix, c);
    }
    free(buf);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
        table[i] = c;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/toc.bin", argv[2]);
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    toc = malloc(sizeof *toc * 100000);
    members = fread(toc, sizeof *toc, 100000, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/archive.bin", argv[2]);
    archive = fopen(path, "rb");
    if (!archive)
        die(path);

    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, worker, strcmp(argv[1], "repaired") ? NULL : "");
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    printf("%ld of %ld good, %08x\n", (long)good, members, (unsigned)mix);
    return 0;
}
