// Takes a camera stream onto disk.
#include <fcntl.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int, char **argv) {
    const size_t block = 4 << 20, blocks = 90;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || posix_fallocate(fd, 0, block * blocks)) { perror(argv[1]); return 1; }
    std::vector<uint64_t> buf(block / 8);
    uint64_t x = 1, sum = 0;
    for (size_t b = 0; b < blocks; b++) {
        for (auto &v : buf) {  // the sensor
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            v = x;
            sum += x >> 40;
        }
        if (write(fd, buf.data(), block) != (ssize_t)block) { perror("write"); return 1; }
        sync_file_range(fd, b * block, block, SYNC_FILE_RANGE_WRITE);
    }
    if (fdatasync(fd)) { perror("fdatasync"); return 1; }
    close(fd);
    printf("%zu %lu\n", blocks, sum);
}
