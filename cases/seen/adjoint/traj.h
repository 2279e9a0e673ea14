// Layout of a trajectory file, shared by the forward model and the adjoint.
#pragma once
#include <cstdint>

struct TrajHeader {
    char     magic[8];      // "RDTRAJ1"
    uint32_t cells;
    uint32_t steps;
    double   dt, dx, diffusion, rate;
    double   pad[2];
};
static_assert(sizeof(TrajHeader) == 64, "header is 64 bytes");
