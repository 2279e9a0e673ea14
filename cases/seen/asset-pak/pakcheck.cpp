// Checks the directory of an asset pack.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>

struct Entry {
    uint64_t hash, offset;
    uint32_t size, kind;
    char name[8];
};
struct Header {
    char magic[4];
    uint32_t count;
    uint64_t directory;
};

class Pack {
public:
    Pack(const char *path, bool straight) : in_(path, std::ios::binary), straight_(straight) {
        in_.read(reinterpret_cast<char *>(&head_), sizeof head_);
        if (straight_) in_.seekg(head_.directory);
    }
    uint32_t count() const { return head_.count; }
    Entry entry(uint32_t i) {
        Entry e;
        if (!straight_) in_.seekg(head_.directory + uint64_t(i) * sizeof e);
        in_.read(reinterpret_cast<char *>(&e), sizeof e);
        return e;
    }

private:
    std::ifstream in_;
    bool straight_;
    Header head_;
};

int main(int argc, char **argv) {
    Pack p(argv[1], argc > 2);
    uint64_t sum = 0, expect = sizeof(Header) + uint64_t(p.count()) * sizeof(Entry), gaps = 0;
    for (uint32_t i = 0; i < p.count(); i++) {
        Entry e = p.entry(i);
        if (e.offset != expect) gaps++;
        expect = e.offset + e.size;
        uint64_t h = e.hash;
        for (int k = 0; k < 90; k++)
            for (char c : e.name) h = (h ^ uint8_t(c)) * 1099511628211ull;
        sum += h + e.kind;
    }
    printf("%u %lu %016lx\n", p.count(), gaps, sum);
}
