#include "xref_main.h"
#include <cstring>
#include <fstream>

// Tables are read whole on first use and then served from memory.
class ObjectFile {
    std::ifstream in_;
    Elf64_Ehdr eh_;
    std::map<uint64_t, std::vector<char>> tables_;

    template <class T> T read_at(uint64_t off) {
        T v;
        in_.seekg(off);
        if (!in_.read(reinterpret_cast<char *>(&v), sizeof v)) { fprintf(stderr, "truncated object\n"); exit(1); }
        return v;
    }
    const std::vector<char> &table(const Elf64_Shdr &sec) {
        std::vector<char> &t = tables_[sec.sh_offset];
        if (t.empty()) {
            t.resize(sec.sh_size);
            in_.seekg(sec.sh_offset);
            if (!in_.read(t.data(), t.size())) { fprintf(stderr, "truncated object\n"); exit(1); }
        }
        return t;
    }
public:
    explicit ObjectFile(const char *path) : in_(path, std::ios::binary) {
        if (!in_) { perror(path); exit(1); }
        eh_ = read_at<Elf64_Ehdr>(0);
    }
    size_t sections() const { return eh_.e_shnum; }
    Elf64_Shdr section(size_t i) { return read_at<Elf64_Shdr>(eh_.e_shoff + i * eh_.e_shentsize); }
    template <class T> T entry(const Elf64_Shdr &sec, size_t i) {
        T v;
        memcpy(&v, table(sec).data() + i * sizeof(T), sizeof v);
        return v;
    }
    std::string string(const Elf64_Shdr &strtab, size_t off) { return table(strtab).data() + off; }
};

int main(int argc, char **argv) {
    if (argc != 2) { fprintf(stderr, "usage: xref OBJECT\n"); return 2; }
    ObjectFile obj(argv[1]);
    return xref(obj);
}
