#include "scene.h"
#include <cstring>
#include <fstream>
#include <stdexcept>

struct SceneFile::Impl {
    std::ifstream in;
    std::vector<char> block;
};

SceneFile::SceneFile(const std::string &path) : impl_(new Impl) {
    impl_->in.open(path, std::ios::binary);
    struct { char magic[4]; uint32_t n, stride, flags; } head;
    if (!impl_->in.read(reinterpret_cast<char *>(&head), sizeof head) || memcmp(head.magic, "SCN1", 4))
        throw std::runtime_error("not a scene file: " + path);
    table_.resize(head.n);
    stride_ = head.stride;
    impl_->in.read(reinterpret_cast<char *>(table_.data()), head.n * sizeof(Submesh));
}

SceneFile::~SceneFile() { delete impl_; }

#ifndef WHOLE_SUBMESH
void SceneFile::positions(const Submesh &m, std::vector<Vec3> &out) {
    out.resize(m.count);
    // the position is the first attribute of a vertex; step over the others
    for (uint32_t i = 0; i < m.count; i++) {
        impl_->in.seekg(m.offset + uint64_t(i) * stride_);
        impl_->in.read(reinterpret_cast<char *>(&out[i]), sizeof(Vec3));
    }
    if (!impl_->in) throw std::runtime_error("short scene file");
}
#else
void SceneFile::positions(const Submesh &m, std::vector<Vec3> &out) {
    out.resize(m.count);
    impl_->block.resize(size_t(m.count) * stride_);
    impl_->in.seekg(m.offset);
    if (!impl_->in.read(impl_->block.data(), impl_->block.size())) throw std::runtime_error("short scene file");
    for (uint32_t i = 0; i < m.count; i++)
        memcpy(&out[i], impl_->block.data() + size_t(i) * stride_, sizeof(Vec3));
}
#endif
