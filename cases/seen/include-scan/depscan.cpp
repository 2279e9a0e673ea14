// Dependency scanner.
#include <dirent.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

static std::vector<std::string> path;
static std::unordered_map<std::string, int> listed;

static void list_all() {
    for (int i = 0; i < (int)path.size(); i++) {
        DIR *d = opendir(path[i].c_str());
        while (dirent *e = readdir(d)) listed.emplace(e->d_name, i);
        closedir(d);
    }
}

static int find_header(const std::string &name, bool use_list) {
    if (use_list) {
        auto it = listed.find(name);
        return it == listed.end() ? -1 : it->second;
    }
    for (int i = 0; i < (int)path.size(); i++)
        if (access((path[i] + "/" + name).c_str(), R_OK) == 0) return i;
    return -1;
}

int main(int argc, char **argv) {
    std::string base = argv[1];
    bool use_list = argc > 2;
    char buf[64];
    for (int i = 0; i < 48; i++) {
        snprintf(buf, sizeof buf, "/inc/mod%02d/include/public", i);
        path.push_back(base + buf);
    }
    if (use_list) list_all();
    std::vector<std::string> units;
    DIR *d = opendir((base + "/src").c_str());
    while (dirent *e = readdir(d))
        if (e->d_name[0] != '.') units.push_back(e->d_name);
    closedir(d);
    std::sort(units.begin(), units.end());
    uint64_t edges = 0, where = 0, hash = 1469598103934665603ull;
    for (auto &u : units) {
        std::ifstream in(base + "/src/" + u);
        std::stringstream text;
        text << in.rdbuf();
        std::string line;
        while (std::getline(text, line)) {
            if (line.compare(0, 10, "#include \"") == 0) {
                int i = find_header(line.substr(10, line.size() - 11), use_list);
                if (i < 0) { fprintf(stderr, "no header for %s\n", line.c_str()); return 1; }
                edges++;
                where = where * 31 + i;
            }
            for (int pass = 0; pass < 6; pass++)
                for (unsigned char c : line) hash = (hash ^ c) * 1099511628211ull;
        }
    }
    printf("%zu %lu %lu %lu\n", units.size(), edges, where, hash);
}
