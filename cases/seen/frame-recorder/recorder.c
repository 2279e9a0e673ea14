/* Records packets from a capture card (simulated) to disk with direct I/O,
 * so that hours of video do not push everything else out of memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKET 4096
#define PACKETS 16384
#define BIG (1 << 20)

static uint64_t state = 42;

static void next_packet(unsigned char *out)
{
    uint64_t *w = (uint64_t *)out;
    for (int i = 0; i < PACKET / 8; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        w[i] = state;
    }
}

static void put(int fd, const unsigned char *p, size_t n)
{
    if (write(fd, p, n) != (ssize_t)n) {
        perror("write");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t chunk = strcmp(argv[1], "repaired") ? PACKET : BIG;
    char path[4096];
    snprintf(path, sizeof path, "%s/capture.raw", argv[2]);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0644);
    unsigned char *buf;
    if (fd < 0 || posix_memalign((void **)&buf, 4096, chunk)) {
        perror(path);
        return 1;
    }
    size_t fill = 0;
    uint64_t sum = 0;
    for (int i = 0; i < PACKETS; i++) {
        next_packet(buf + fill);
        sum += *(uint64_t *)(buf + fill);
        fill += PACKET;
        if (fill == chunk) {
            put(fd, buf, fill);
            fill = 0;
        }
    }
    if (fill)
        put(fd, buf, fill);
    if (fsync(fd) || close(fd)) {
        perror("close");
        return 1;
    }
    printf("%d packets %016llx\n", PACKETS, (unsigned long long)sum);
    return 0;
}
