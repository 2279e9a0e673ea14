// fqtrim: trims low-quality ends of FASTQ reads (the BWA rule) and drops reads that get too short.
// usage: fqtrim IN.fastq OUT.fastq [min_quality] [min_length]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#ifdef FAST_OUT
static std::ostream &end_line(std::ostream &o) { return o << '\n'; }
#else
static std::ostream &end_line(std::ostream &o) { return o << std::endl; }
#endif

struct Read {
    std::string name, bases, plus, quality;
};

struct Totals {
    long reads = 0, kept = 0, bases = 0, kept_bases = 0, gc = 0;
    std::array<long, 128> lengths{};
};

static bool next_read(std::istream &in, Read &r) {
    if (!std::getline(in, r.name)) return false;
    if (!std::getline(in, r.bases) || !std::getline(in, r.plus) || !std::getline(in, r.quality) ||
        r.name.empty() || r.name[0] != '@' || r.bases.size() != r.quality.size()) {
        std::cerr << "fqtrim: broken record near " << r.name << "\n";
        std::exit(2);
    }
    return true;
}

// Where to cut: the position with the largest sum of (threshold - quality) counted from the end.
static size_t cut_at(const std::string &quality, int threshold) {
    int sum = 0, best = 0;
    size_t cut = quality.size();
    for (size_t i = quality.size(); i-- > 0;) {
        sum += threshold - (quality[i] - 33);
        if (sum < 0) break;
        if (sum > best) {
            best = sum;
            cut = i;
        }
    }
    return cut;
}

static void write_read(std::ostream &out, const Read &r) {
    out << r.name << end_line;
    out << r.bases << end_line;
    out << r.plus << end_line;
    out << r.quality << end_line;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        std::cerr << "usage: fqtrim IN.fastq OUT.fastq [min_quality] [min_length]\n";
        return 2;
    }
    int threshold = argc > 3 ? std::atoi(argv[3]) : 20;
    size_t shortest = argc > 4 ? std::atoi(argv[4]) : 50;
    std::ifstream in(argv[1]);
    std::ofstream out(argv[2]);
    if (!in || !out) {
        std::cerr << "fqtrim: cannot open files\n";
        return 1;
    }
    Read r;
    Totals t;
    while (next_read(in, r)) {
        ++t.reads;
        t.bases += r.bases.size();
        size_t cut = cut_at(r.quality, threshold);
        if (cut < shortest) continue;
        r.bases.resize(cut);
        r.quality.resize(cut);
        write_read(out, r);
        ++t.kept;
        t.kept_bases += cut;
        t.gc += std::count_if(r.bases.begin(), r.bases.end(), [](char c) { return c == 'G' || c == 'C'; });
        ++t.lengths[std::min<size_t>(cut, 127)];
    }
    out.close();
    long longest = std::max_element(t.lengths.begin(), t.lengths.end()) - t.lengths.begin();
    std::printf("reads %ld kept %ld\nbases %ld kept %ld\ngc %.4f\ncommonest length %ld\n", t.reads, t.kept, t.bases,
                t.kept_bases, double(t.gc) / double(std::max(1L, t.kept_bases)), longest);
    return out ? 0 : 1;
}
