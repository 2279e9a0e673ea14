#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct Vec3 { float x, y, z; };

struct Submesh {
    uint64_t offset;   // first vertex in the file
    uint32_t count;
    uint32_t pad;
};

struct Bounds {
    Vec3 lo, hi;
    void reset(const Vec3 &p) { lo = hi = p; }
    void add(const Vec3 &p) {
        if (p.x < lo.x) lo.x = p.x;
        if (p.y < lo.y) lo.y = p.y;
        if (p.z < lo.z) lo.z = p.z;
        if (p.x > hi.x) hi.x = p.x;
        if (p.y > hi.y) hi.y = p.y;
        if (p.z > hi.z) hi.z = p.z;
    }
};

class SceneFile {
public:
    explicit SceneFile(const std::string &path);
    ~SceneFile();
    const std::vector<Submesh> &submeshes() const { return table_; }
    // positions of all vertices of one submesh (no normals, uv, ...)
    void positions(const Submesh &m, std::vector<Vec3> &out);
private:
    struct Impl;
    Impl *impl_;
    std::vector<Submesh> table_;
    uint32_t stride_ = 0;
};
