// Luma histogram per frame of raw 8-bit RGB video, read past the page cache.
#include <fcntl.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <array>

constexpr size_t kFrame = 3072000;  // 1280 x 800 x 3

int main(int argc, char **argv) {
    size_t piece = strtoul(argv[2], nullptr, 10);
    int fd = open(argv[1], O_RDONLY | O_DIRECT);
    if (fd < 0) { perror(argv[1]); return 1; }
    uint8_t *frame = static_cast<uint8_t *>(aligned_alloc(4096, kFrame));
    uint64_t sum = 0;
    int frames = 0;
    for (off_t at = 0;; at += kFrame) {
        size_t got = 0;
        while (got < kFrame) {
            ssize_t n = pread(fd, frame + got, std::min(piece, kFrame - got), at + got);
            if (n < 0) { perror("pread"); return 1; }
            if (n == 0) break;
            got += n;
        }
        if (got < kFrame) break;
        std::array<uint32_t, 256> histo{};
        std::array<uint32_t, 768> rgb{};
        for (size_t i = 0; i < kFrame; i += 3) {
            histo[(frame[i] * 54 + frame[i + 1] * 183 + frame[i + 2] * 19) >> 8]++;
            rgb[frame[i]]++;
            rgb[256 + frame[i + 1]]++;
            rgb[512 + frame[i + 2]]++;
        }
        for (uint32_t v : rgb) sum = sum * 33 + v;
        for (int i = 0; i < 256; i++) sum = sum * 31 + histo[i];
        frames++;
    }
    printf("%d %lu\n", frames, sum);
}
