#include "xref_main.h"
#include <fstream>

class ObjectFile {
    std::ifstream in_;
    Elf64_Ehdr eh_;

    template <class T> T read_at(uint64_t off) {
        T v;
        in_.seekg(off);
        if (!in_.read(reinterpret_cast<char *>(&v), sizeof v)) { fprintf(stderr, "truncated object\n"); exit(1); }
        return v;
    }
public:
    explicit ObjectFile(const char *path) : in_(path, std::ios::binary) {
        if (!in_) { perror(path); exit(1); }
        eh_ = read_at<Elf64_Ehdr>(0);
    }
    size_t sections() const { return eh_.e_shnum; }
    Elf64_Shdr section(size_t i) { return read_at<Elf64_Shdr>(eh_.e_shoff + i * eh_.e_shentsize); }
    template <class T> T entry(const Elf64_Shdr &sec, size_t i) { return read_at<T>(sec.sh_offset + i * sizeof(T)); }
    std::string string(const Elf64_Shdr &strtab, size_t off) {
        std::string s;
        in_.seekg(strtab.sh_offset + off);
        std::getline(in_, s, '\0');
        return s;
    }
};

int main(int argc, char **argv) {
    if (argc != 2) { fprintf(stderr, "usage: xref OBJECT\n"); return 2; }
    ObjectFile obj(argv[1]);
    return xref(obj);
}
