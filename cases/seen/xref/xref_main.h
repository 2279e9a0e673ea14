// Cross reference of an object file: how often each class is called, by demangled name.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <elf.h>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

inline std::string demangle(const std::string &name) {
    int status;
    char *d = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string out = status == 0 ? d : name;
    free(d);
    return out;
}

// "opt::LoopInfo::run(int)" -> "opt::LoopInfo"
inline std::string owner(const std::string &pretty) {
    size_t end = pretty.rfind("::", pretty.find('('));
    return end == std::string::npos ? pretty : pretty.substr(0, end);
}

template <class Object>
int xref(Object &obj) {
    struct Use { long calls = 0, absolute = 0, bytes = 0; };
    std::unordered_map<std::string, Use> uses;
    long total = 0;
    for (size_t s = 0; s < obj.sections(); s++) {
        Elf64_Shdr rel = obj.section(s);
        if (rel.sh_type != SHT_RELA) continue;
        Elf64_Shdr symtab = obj.section(rel.sh_link), strtab = obj.section(symtab.sh_link);
        for (size_t i = 0; i < rel.sh_size / sizeof(Elf64_Rela); i++) {
            Elf64_Rela r = obj.template entry<Elf64_Rela>(rel, i);
            Elf64_Sym sym = obj.template entry<Elf64_Sym>(symtab, ELF64_R_SYM(r.r_info));
            Use &u = uses[owner(demangle(obj.string(strtab, sym.st_name)))];
            if (ELF64_R_TYPE(r.r_info) == R_X86_64_PLT32) u.calls++; else u.absolute++;
            u.bytes += sym.st_size;
            total++;
        }
    }
    std::vector<std::pair<std::string, Use>> rows(uses.begin(), uses.end());
    std::sort(rows.begin(), rows.end(), [](auto &a, auto &b) {
        long x = a.second.calls + a.second.absolute, y = b.second.calls + b.second.absolute;
        return x != y ? x > y : a.first < b.first;
    });
    printf("%ld references, %zu classes\n", total, rows.size());
    for (size_t i = 0; i < rows.size() && i < 12; i++)
        printf("%7ld %7ld %10ld  %s\n", rows[i].second.calls, rows[i].second.absolute, rows[i].second.bytes, rows[i].first.c_str());
    return 0;
}
