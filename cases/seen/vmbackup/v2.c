/* vmbackup: copies the used chunks of virtual disk images into one backup
 * container and writes a manifest with a fingerprint for every chunk. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define FORGET (32 * 1024 * 1024)            /* leave the host's cache to the guests */

static uint64_t chunks, stored;
static uint64_t catalogue = 14695981039346656037ull;

static void die(const char *what) { perror(what); exit(1); }

static uint64_t fnv(uint64_t h, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h ^= p[i];
        h *= 1099511628211ull;
    }
    return h;
}

static int all_zero(const unsigned char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static void write_all(int fd, const unsigned char *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0) die("write");
        p += w;
        n -= (size_t)w;
    }
}

static size_t read_chunk(int fd, unsigned char *buf, off_t at)
{
    size_t got = 0;
    while (got < CHUNK) {
        ssize_t r = pread(fd, buf + got, CHUNK - got, at + (off_t)got);
        if (r < 0) die("read");
        if (r == 0) break;
        got += (size_t)r;
    }
    return got;
}

static void backup_image(const char *dir, const char *name, int out, FILE *manifest)
{
    static unsigned char buf[CHUNK];
    char path[4096];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s.img", dir, name);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0) die(path);

    off_t hole = 0;                         /* end of the extent we are in */
    off_t kept = 0;
    for (off_t at = 0; at < st.st_size; at += CHUNK) {
        if (at >= hole) {
            off_t data = lseek(fd, at, SEEK_DATA);
            if (data < 0 && errno == ENXIO)
                break;                      /* only a hole up to the end */
            if (data < 0) die("lseek");
            hole = lseek(fd, data, SEEK_HOLE);
            if (hole < 0) die("lseek");
            at = data - data % CHUNK;
        }
        if (at - kept >= FORGET) {
            posix_fadvise(fd, kept, at - kept, POSIX_FADV_DONTNEED);
            kept = at;
        }
        size_t n = read_chunk(fd, buf, at);
        if (all_zero(buf, n))
            continue;                       /* unused space of the guest */
        uint64_t h = fnv(14695981039346656037ull, buf, n);
        fprintf(manifest, "%s %jd %zu %016" PRIx64 "\n", name, (intmax_t)at, n, h);
        catalogue = fnv(catalogue, (unsigned char *)&h, sizeof h);
        write_all(out, buf, n);
        chunks++;
        stored += n;
    }
    posix_fadvise(fd, kept, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc < 4) { fprintf(stderr, "usage: vmbackup IMAGES TARGET NAME...\n"); return 2; }
    char path[4096];
    mkdir(argv[2], 0777);
    snprintf(path, sizeof path, "%s/backup.dat", argv[2]);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out < 0) die(path);
    snprintf(path, sizeof path, "%s/manifest", argv[2]);
    FILE *manifest = fopen(path, "w");
    if (!manifest) die(path);
    for (int i = 3; i < argc; i++)
        backup_image(argv[1], argv[i], out, manifest);
    if (fclose(manifest) || fsync(out) || close(out)) die("close");
    printf("%" PRIu64 " chunks, %" PRIu64 " bytes, catalogue %016" PRIx64 "\n", chunks, stored, catalogue);
    return 0;
}
