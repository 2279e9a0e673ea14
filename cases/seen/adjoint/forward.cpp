// Forward model: u_t = D u_xx + r u (1 - u) on a periodic line, explicit Euler.
// Stores the state before every step: the adjoint needs all of them.
#include "traj.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "usage: forward OUT CELLS STEPS\n"); return 2; }
    TrajHeader h{};
    memcpy(h.magic, "RDTRAJ1", 8);
    h.cells = atoi(argv[2]);
    h.steps = atoi(argv[3]);
    h.dx = 1.0 / h.cells;
    h.diffusion = 1e-5;
    h.dt = 0.2 * h.dx * h.dx / h.diffusion;
    h.rate = 0.02;
    FILE *f = fopen(argv[1], "wb");
    if (!f) { perror(argv[1]); return 1; }
    static char buf[1 << 20];
    setvbuf(f, buf, _IOFBF, sizeof buf);
    fwrite(&h, sizeof h, 1, f);
    const int n = h.cells;
    std::vector<double> u(n), v(n);
    for (int i = 0; i < n; i++)
        u[i] = 0.4 + 0.3 * std::sin(6.2831853 * 3 * i / n) + 0.1 * std::cos(6.2831853 * 17 * i / n);
    const double c = h.diffusion * h.dt / (h.dx * h.dx);
    for (uint32_t s = 0; s < h.steps; s++) {
        if (fwrite(u.data(), sizeof(double), n, f) != (size_t)n) { perror("write"); return 1; }
        for (int i = 0; i < n; i++) {
            double l = u[i ? i - 1 : n - 1], r = u[i + 1 < n ? i + 1 : 0];
            v[i] = u[i] + c * (l - 2 * u[i] + r) + h.dt * h.rate * u[i] * (1 - u[i]);
        }
        u.swap(v);
    }
    return fclose(f) ? (perror("close"), 1) : 0;
}
