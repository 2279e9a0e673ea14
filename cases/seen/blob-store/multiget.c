/* Multi-get from a value log. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VALUE 1024
#define KEYS 42000
#define MAXQ 256

static uint64_t place[KEYS];
static uint64_t total;

static void use(const unsigned char *v)
{
    uint64_t h = 14695981039346656037ull;
    for (int pass = 0; pass < 4; pass++)
        for (int i = 0; i < VALUE; i++) h = (h ^ v[i]) * 1099511628211ull;
    total += h;
}

static void die(const char *w) { perror(w); exit(1); }

static void get_serial(int fd)
{
    unsigned char v[VALUE];
    for (int i = 0; i < KEYS; i++) {
        if (pread(fd, v, VALUE, place[i]) != VALUE) die("pread");
        use(v);
    }
}

static void get_ring(int fd, unsigned depth)
{
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    int ring = syscall(SYS_io_uring_setup, MAXQ, &p);
    if (ring < 0) die("io_uring_setup");
    size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    size_t cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *sq = mmap(0, sq_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    char *cq = mmap(0, cq_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqes = mmap(0, p.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)sqes == MAP_FAILED) die("mmap");
    unsigned *sq_tail = (unsigned *)(sq + p.sq_off.tail), sq_mask = *(unsigned *)(sq + p.sq_off.ring_mask);
    unsigned *sq_array = (unsigned *)(sq + p.sq_off.array);
    unsigned *cq_head = (unsigned *)(cq + p.cq_off.head), *cq_tail = (unsigned *)(cq + p.cq_off.tail);
    unsigned cq_mask = *(unsigned *)(cq + p.cq_off.ring_mask);
    struct io_uring_cqe *cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
    static unsigned char buf[MAXQ][VALUE];
    unsigned free_slots[MAXQ], nfree = 0;
    for (unsigned i = 0; i < depth; i++) free_slots[nfree++] = i;
    int next = 0, done = 0;
    while (done < KEYS) {
        unsigned added = 0, tail = *sq_tail;
        while (nfree && next < KEYS) {
            unsigned s = free_slots[--nfree], at = tail & sq_mask;
            struct io_uring_sqe *e = &sqes[at];
            memset(e, 0, sizeof *e);
            e->opcode = IORING_OP_READ;
            e->fd = fd;
            e->addr = (uintptr_t)buf[s];
            e->len = VALUE;
            e->off = place[next++];
            e->user_data = s;
            sq_array[at] = at;
            tail++;
            added++;
        }
        __atomic_store_n(sq_tail, tail, __ATOMIC_RELEASE);
        unsigned want = depth - nfree < 16 ? depth - nfree : 16;
        if (syscall(SYS_io_uring_enter, ring, added, want, IORING_ENTER_GETEVENTS, NULL, 0) < 0) die("io_uring_enter");
        unsigned head = *cq_head;
        while (head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE)) {
            struct io_uring_cqe *c = &cqes[head & cq_mask];
            if (c->res != VALUE) { fprintf(stderr, "read: %d\n", c->res); exit(1); }
            use(buf[c->user_data]);
            free_slots[nfree++] = c->user_data;
            head++;
            done++;
        }
        __atomic_store_n(cq_head, head, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) die(argv[1]);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    uint64_t n = st.st_size / VALUE, x = 1181783497276652981ull;
    for (int i = 0; i < KEYS; i++) {
        x ^= x >> 12; x ^= x << 25; x ^= x >> 27;
        place[i] = x % n * VALUE;
    }
    if (argc > 2) get_ring(fd, atoi(argv[2]));
    else get_serial(fd);
    printf("%d %016lx\n", KEYS, total);
    return 0;
}
