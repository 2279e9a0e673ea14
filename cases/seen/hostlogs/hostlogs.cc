// hostlogs OUT LOG...: merges the access logs of several hosts by time, replaces client addresses by a keyed
// pseudonym, and counts requests and bytes of each path.
#include "stream.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <queue>
#include <unordered_map>

namespace {

// Many rounds, so that the four thousand million addresses cannot simply be tried.
std::uint64_t pseudonym(std::string_view addr, std::uint64_t key) {
    std::uint64_t h = key;
    for (int round = 0; round < 40; round++) {
        for (unsigned char c : addr) h = (h ^ c) * 0x100000001b3ull;
        h ^= h >> 29;
        h *= 0xbf58476d1ce4e5b9ull;
        h ^= h >> 32;
    }
    return h;
}

struct Source {
    std::unique_ptr<LineReader> reader;
    std::string_view line;
    std::size_t rank;
};

struct Later {
    bool operator()(const Source *a, const Source *b) const {
        int c = a->line.substr(0, 24).compare(b->line.substr(0, 24));
        return c != 0 ? c > 0 : a->rank > b->rank;
    }
};

struct Usage {
    std::uint64_t requests = 0, bytes = 0, missing = 0;
};

std::string_view field(std::string_view &rest) {
    std::size_t n = std::min(rest.find(' '), rest.size());
    std::string_view f = rest.substr(0, n);
    rest.remove_prefix(std::min(n + 1, rest.size()));
    return f;
}

int merge(int argc, char **argv) {
    std::vector<Source> sources;
    for (int i = 2; i < argc; i++) sources.push_back({std::make_unique<LineReader>(argv[i]), {}, std::size_t(i)});
    std::priority_queue<Source *, std::vector<Source *>, Later> heap;
    for (auto &s : sources)
        if (s.reader->next(s.line)) heap.push(&s);

    FileWriter out(argv[1]);
    std::unordered_map<std::string, Usage> usage;
    std::uint64_t lines = 0, check = 0;
    std::string path;
    while (!heap.empty()) {
        Source *s = heap.top();
        heap.pop();
        std::string_view rest = s->line, time = field(rest), addr = field(rest), tail = rest;
        field(rest);
        std::string_view target = field(rest), status = field(rest), size = field(rest);
        path.assign(target.substr(0, target.find('?')));
        Usage &u = usage[path];
        std::uint64_t n = 0;
        std::from_chars(size.data(), size.data() + size.size(), n);
        u.requests++;
        u.bytes += n;
        u.missing += status == "404";

        std::uint64_t p = pseudonym(addr, 0x5eedull);
        std::array<char, 20> hex;
        int len = std::snprintf(hex.data(), hex.size(), " %016llx ", static_cast<unsigned long long>(p));
        out.append(time);
        out.append({hex.data(), std::size_t(len)});
        out.append(tail);
        check = (check ^ p) * 31 + lines++;
        if (s->reader->next(s->line)) heap.push(s);
    }
    out.commit();

    std::map<std::string, Usage> sorted(usage.begin(), usage.end());
    Usage all;
    for (auto &[name, u] : sorted) {
        all.requests += u.requests;
        all.bytes += u.bytes;
        all.missing += u.missing;
    }
    std::printf("%llu lines, %zu paths, %llu bytes, %llu missing, %016llx\n", (unsigned long long)lines, sorted.size(),
                (unsigned long long)all.bytes, (unsigned long long)all.missing, (unsigned long long)check);
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    try {
        return merge(argc, argv);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "hostlogs: %s\n", e.what());
        return 1;
    }
}
