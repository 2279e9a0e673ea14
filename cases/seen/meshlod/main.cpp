// meshlod: bounding boxes and level-of-detail distances of the submeshes of a scene.
#include "scene.h"
#include <cmath>
#include <cstdio>

int main(int argc, char **argv) {
    if (argc != 3) { fprintf(stderr, "usage: meshlod SCENE OUT.txt\n"); return 2; }
    SceneFile scene(argv[1]);
    FILE *out = fopen(argv[2], "w");
    if (!out) { perror(argv[2]); return 1; }
    std::vector<Vec3> pos;
    Bounds world{};
    bool first = true;
    unsigned long vertices = 0;
    double total = 0;
    int id = 0;
    for (const Submesh &m : scene.submeshes()) {
        scene.positions(m, pos);
        Bounds b;
        b.reset(pos[0]);
        for (const Vec3 &p : pos) b.add(p);
        float dx = b.hi.x - b.lo.x, dy = b.hi.y - b.lo.y, dz = b.hi.z - b.lo.z;
        float radius = 0.5f * std::sqrt(dx * dx + dy * dy + dz * dz);
        // switch to the next level when a triangle covers less than two pixels
        double density = std::sqrt(m.count / (radius * radius));
        double lod1 = 900.0 / density, lod2 = lod1 * 3;
        fprintf(out, "%d %u %.3f %.3f %.3f %.3f %.3f %.3f %.2f %.2f\n", id++, m.count, b.lo.x, b.lo.y, b.lo.z,
                b.hi.x, b.hi.y, b.hi.z, lod1, lod2);
        if (first) { world = b; first = false; }
        world.add(b.lo);
        world.add(b.hi);
        vertices += m.count;
        total += lod1;
    }
    fclose(out);
    printf("%d submeshes, %lu vertices, world %.2f %.2f %.2f .. %.2f %.2f %.2f, mean lod %.4f\n", id, vertices,
           world.lo.x, world.lo.y, world.lo.z, world.hi.x, world.hi.y, world.hi.z, total / id);
}
