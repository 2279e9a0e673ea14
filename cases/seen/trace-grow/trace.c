/* Trace recorder: events are appended to a mapped file, so that they survive
 * a crash of the engine. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVENTS 200000
#define STEP (16 << 20)

struct event {
    uint64_t at, thread;
    char name[48];
    uint32_t args[8];
};

static int fd;
static off_t length;   /* of the events */
static char *window;   /* repaired: the mapped step */
static off_t mapped_to;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *map(off_t from, size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, from);
    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

static void append_exact(const struct event *e)
{
    off_t page = length & ~(off_t)4095;
    size_t n = length + sizeof *e - page;
    if (ftruncate(fd, length + sizeof *e))
        die("ftruncate");
    char *p = map(page, n);
    memcpy(p + (length - page), e, sizeof *e);
    munmap(p, n);
    length += sizeof *e;
}

static void append_in_steps(const struct event *e)
{
    const char *from = (const char *)e;
    size_t left = sizeof *e;
    while (left) {
        if (length == mapped_to) {
            if (window)
                munmap(window, STEP);
            if (ftruncate(fd, mapped_to + STEP))
                die("ftruncate");
            window = map(mapped_to, STEP);
            mapped_to += STEP;
        }
        size_t n = mapped_to - length < (off_t)left ? (size_t)(mapped_to - length) : left;
        memcpy(window + STEP - (mapped_to - length), from, n);
        from += n;
        left -= n;
        length += n;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char path[4096];
    int steps = !strcmp(argv[1], "repaired");
    snprintf(path, sizeof path, "%s/trace.bin", argv[2]);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        die(path);
    for (int i = 0; i < EVENTS; i++) {
        struct event e = { .at = 1000 + 37ull * i, .thread = i % 5 };
        snprintf(e.name, sizeof e.name, "frame %d pass %d", i / 40, i % 40);
        for (int k = 0; k < 8; k++)
            e.args[k] = i * 2654435761u >> k;
        if (steps)
            append_in_steps(&e);
        else
            append_exact(&e);
    }
    if (ftruncate(fd, length))
        die("ftruncate");

    unsigned char *all = map(0, length);
    uint64_t h = 14695981039346656037u;
    for (off_t i = 0; i < length; i++)
        h = (h ^ all[i]) * 1099511628211u;
    printf("%d events, %ld bytes, digest %016llx\n", EVENTS, (long)length, (unsigned long long)h);
    return 0;
}
