#include "adjoint_body.h"
#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

// Fetches the states in blocks of about 8 MiB; within a block they are handed out
// backwards from memory.
class Trajectory {
    int fd_;
    TrajHeader h_;
    int per_block_, first_ = 0, count_ = 0;
    std::vector<double> block_;
public:
    explicit Trajectory(const char *path) : fd_(open(path, O_RDONLY)) {
        if (fd_ < 0 || pread(fd_, &h_, sizeof h_, 0) != (ssize_t)sizeof h_) { perror(path); exit(1); }
        per_block_ = std::max<int>(1, (8 << 20) / (h_.cells * sizeof(double)));
        block_.resize((size_t)per_block_ * h_.cells);
    }
    ~Trajectory() { close(fd_); }
    const TrajHeader &header() const { return h_; }

    const double *frame(int s) {
        if (s < first_ || s >= first_ + count_) {
            first_ = std::max(0, s - per_block_ + 1);
            count_ = s - first_ + 1;
            const size_t frame = h_.cells * sizeof(double);
            size_t want = count_ * frame, got = 0;
            off_t at = sizeof(TrajHeader) + (off_t)first_ * frame;
            while (got < want) {
                ssize_t r = pread(fd_, (char *)block_.data() + got, want - got, at + got);
                if (r <= 0) { perror("trajectory"); exit(1); }
                got += r;
            }
        }
        return block_.data() + (size_t)(s - first_) * h_.cells;
    }
};

int main(int argc, char **argv) {
    if (argc != 2) { fprintf(stderr, "usage: adjoint TRAJECTORY\n"); return 2; }
    Trajectory t(argv[1]);
    return sweep(t);
}
