// readtrim: sorts mixed sequencing reads into one file a sample by their barcode,
// cuts ends of low quality off (the running-sum rule of BWA) and counts 11-mers.
// usage: readtrim READS BARCODES OUTDIR
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t kIn = 1 << 20, kOut = 1 << 18;
constexpr int kQuality = 20, kMinLength = 40;

[[noreturn]] void die(const std::string &what) {
    perror(what.c_str());
    exit(1);
}

class Reader {
  public:
    explicit Reader(const char *path) : fd_(open(path, O_RDONLY | O_CLOEXEC)), buf_(kIn) {
        if (fd_ < 0) die(path);
        posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    ~Reader() { close(fd_); }

    // The next four lines; they stay valid until the next call.
    bool record(std::string_view (&lines)[4]) {
        for (;;) {
            size_t at = pos_;
            int n = 0;
            while (n < 4) {
                auto *nl = static_cast<char *>(memchr(buf_.data() + at, '\n', end_ - at));
                if (!nl) break;
                size_t e = nl - buf_.data();
                lines[n++] = {buf_.data() + at, e - at};
                at = e + 1;
            }
            if (n == 4) {
                pos_ = at;
                return true;
            }
            memmove(buf_.data(), buf_.data() + pos_, end_ - pos_);
            end_ -= pos_;
            pos_ = 0;
            ssize_t got = read(fd_, buf_.data() + end_, buf_.size() - end_);
            if (got < 0) die("read");
            if (got == 0) return false;
            end_ += got;
        }
    }

  private:
    int fd_;
    std::vector<char> buf_;
    size_t pos_ = 0, end_ = 0;
};

class Writer {
  public:
    explicit Writer(std::string path) : path_(std::move(path)) {
        fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd_ < 0) die(path_);
        buf_.reserve(kOut + 4096);
    }
    void add(std::string_view line) {
        buf_.append(line);
        buf_.push_back('\n');
        if (buf_.size() >= kOut) flush();
    }
    void finish() {
        flush();
        if (close(fd_)) die(path_);
    }

  private:
    void flush() {
        for (size_t at = 0; at < buf_.size();) {
            ssize_t n = write(fd_, buf_.data() + at, buf_.size() - at);
            if (n < 0) die(path_);
            at += n;
        }
        buf_.clear();
    }
    std::string path_, buf_;
    int fd_;
};

// Where to cut: the place that makes the sum of (threshold - quality) largest.
size_t keep(std::string_view qual) {
    int sum = 0, best = 0;
    size_t cut = qual.size();
    for (size_t i = qual.size(); i-- > 0;) {
        sum += kQuality - (qual[i] - 33);
        if (sum < 0) break;
        if (sum > best) best = sum, cut = i;
    }
    return cut;
}

std::vector<uint32_t> kmers(1 << 22);  // how often each 11-mer was seen in all reads

// Share of distinct 11-mers, to drop reads of low complexity.
double complexity(std::string_view seq) {
    static std::vector<uint32_t> seen(1 << 22);
    static uint32_t stamp = 0;
    stamp++;
    uint32_t k = 0, distinct = 0, n = 0;
    for (size_t i = 0; i < seq.size(); i++) {
        k = ((k << 2) | ((seq[i] >> 1) & 3)) & ((1 << 22) - 1);
        if (i < 10) continue;
        n++;
        kmers[k]++;
        if (seen[k] != stamp) seen[k] = stamp, distinct++;
    }
    return n ? double(distinct) / n : 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    mkdir(argv[3], 0755);
    std::unordered_map<std::string, size_t> sample;
    std::vector<Writer> out;
    std::ifstream bars(argv[2]);
    for (std::string bar; std::getline(bars, bar);) {
        sample[bar] = out.size();
        out.emplace_back(std::string(argv[3]) + "/" + bar + ".fastq");
    }

    Reader in(argv[1]);
    std::string_view r[4];
    uint64_t reads = 0, kept = 0, bases = 0;
    while (in.record(r)) {
        reads++;
        auto found = sample.find(std::string(r[1].substr(0, 8)));
        if (found == sample.end()) continue;
        size_t n = keep(r[3]);
        if (n < 8 + kMinLength) continue;
        auto seq = r[1].substr(8, n - 8);
        if (complexity(seq) < 0.5) continue;
        Writer &w = out[found->second];
        w.add(r[0]);
        w.add(seq);
        w.add(r[2]);
        w.add(r[3].substr(8, n - 8));
        kept++;
        bases += seq.size();
    }
    for (auto &w : out) w.finish();
    uint64_t common = 0;
    for (uint32_t n : kmers) common += n > 100;
    printf("reads %lu kept %lu bases %lu common 11-mers %lu\n", reads, kept, bases, common);
}
