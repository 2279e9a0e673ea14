/* checkpoint: moves the newest version of every page in the write-ahead log into the page store.
 *
 * usage: checkpoint DIR      (DIR/pages.db, DIR/pages.wal)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_SIZE 4096

struct store_header {
    char magic[8];
    uint32_t page_size;
    uint32_t data_start; /* where page 0 begins */
    uint64_t pages;
};

struct frame_header {
    uint64_t lsn;
    uint64_t page;
    uint32_t adler;
    uint32_t len;
};

struct frame {
    uint64_t page;
    uint64_t lsn;
    const unsigned char *data;
};

static void die(const char *what)
{
    fprintf(stderr, "checkpoint: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint32_t adler32(const unsigned char *p, size_t n)
{
    uint32_t a = 1, b = 0;
    while (n > 0) {
        size_t k = n < 5552 ? n : 5552;
        n -= k;
        while (k-- > 0) {
            a += *p++;
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    return b << 16 | a;
}

/* by page, the newest version first */
static int by_page(const void *x, const void *y)
{
    const struct frame *a = x, *b = y;
    if (a->page != b->page)
        return a->page < b->page ? -1 : 1;
    return a->lsn > b->lsn ? -1 : a->lsn < b->lsn;
}

static unsigned char *load_wal(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        die(path);
    unsigned char *buf = malloc(st.st_size);
    if (!buf)
        die("malloc");
    for (off_t got = 0; got < st.st_size;) {
        ssize_t n = read(fd, buf + got, st.st_size - got);
        if (n <= 0)
            die(path);
        got += n;
    }
    close(fd);
    *size = st.st_size;
    return buf;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: checkpoint DIR\n");
        return 2;
    }
    char path[4096];
    size_t wal_size, frames = 0;

    snprintf(path, sizeof path, "%s/pages.wal", argv[1]);
    unsigned char *wal = load_wal(path, &wal_size);

    snprintf(path, sizeof path, "%s/pages.db", argv[1]);
    int db = open(path, O_RDWR | O_CLOEXEC);
    if (db < 0)
        die(path);
    struct store_header head;
    if (pread(db, &head, sizeof head, 0) != sizeof head || memcmp(head.magic, "PGSTORE1", 8) != 0 ||
        head.page_size != PAGE_SIZE) {
        fprintf(stderr, "checkpoint: %s: not a page store\n", path);
        return 1;
    }

    size_t most = wal_size / (sizeof(struct frame_header) + PAGE_SIZE);
    struct frame *list = calloc(most + 1, sizeof *list);
    if (!list)
        die("calloc");
    for (size_t at = 0; at + sizeof(struct frame_header) + PAGE_SIZE <= wal_size;
         at += sizeof(struct frame_header) + PAGE_SIZE) {
        struct frame_header fh;
        memcpy(&fh, wal + at, sizeof fh);
        const unsigned char *data = wal + at + sizeof fh;
        if (fh.len != PAGE_SIZE || fh.page >= head.pages || adler32(data, PAGE_SIZE) != fh.adler)
            break; /* a torn tail ends the log */
        list[frames++] = (struct frame){ fh.page, fh.lsn, data };
    }

    /* One write a page, in file order. */
    qsort(list, frames, sizeof *list, by_page);
    uint64_t written = 0;
    uint32_t sum = 0;
    for (size_t i = 0; i < frames; i++) {
        if (i > 0 && list[i].page == list[i - 1].page)
            continue;
        off_t where = (off_t)head.data_start + (off_t)list[i].page * PAGE_SIZE;
        if (pwrite(db, list[i].data, PAGE_SIZE, where) != PAGE_SIZE)
            die("pwrite");
        written++;
        sum = sum * 31 + adler32(list[i].data, PAGE_SIZE);
    }
    if (fdatasync(db) < 0)
        die("fdatasync");
    close(db);

    printf("frames %zu pages %llu sum %08x\n", frames, (unsigned long long)written, sum);
    return 0;
}
