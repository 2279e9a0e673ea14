#include "adjoint_body.h"
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

class Trajectory {
    int fd_;
    TrajHeader h_;
    std::vector<double> state_;
public:
    explicit Trajectory(const char *path) : fd_(open(path, O_RDONLY)) {
        if (fd_ < 0 || pread(fd_, &h_, sizeof h_, 0) != (ssize_t)sizeof h_) { perror(path); exit(1); }
        state_.resize(h_.cells);
    }
    ~Trajectory() { close(fd_); }
    const TrajHeader &header() const { return h_; }

    const double *frame(int s) {
        const size_t bytes = state_.size() * sizeof(double);
        off_t at = sizeof(TrajHeader) + (off_t)s * bytes;
        if (pread(fd_, state_.data(), bytes, at) != (ssize_t)bytes) { perror("trajectory"); exit(1); }
        return state_.data();
    }
};

int main(int argc, char **argv) {
    if (argc != 2) { fprintf(stderr, "usage: adjoint TRAJECTORY\n"); return 2; }
    Trajectory t(argv[1]);
    return sweep(t);
}
