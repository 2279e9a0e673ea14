// The adjoint sweep: walks the stored states from the last one to the first and
// accumulates the gradient of J = mean(u_final) with respect to the reaction rate,
// the diffusion and the initial state. `Reader::frame(s)` gives the state before step s.
#pragma once
#include "traj.h"
#include <cmath>
#include <cstdio>
#include <vector>

template <class Reader>
int sweep(Reader &traj) {
    const TrajHeader &h = traj.header();
    const int n = h.cells;
    const double c = h.diffusion * h.dt / (h.dx * h.dx), k = h.dt / (h.dx * h.dx);
    std::vector<double> lam(n, 1.0 / n), next(n);
    double d_rate = 0, d_diff = 0, entropy = 0;
    for (int s = (int)h.steps - 1; s >= 0; s--) {
        const double *u = traj.frame(s);
        double gr = 0, gd = 0, e = 0;
        for (int i = 0; i < n; i++) {
            int l = i ? i - 1 : n - 1, r = i + 1 < n ? i + 1 : 0;
            gr += lam[i] * u[i] * (1 - u[i]);
            gd += lam[i] * (u[l] - 2 * u[i] + u[r]);
            e -= u[i] * std::log(std::fabs(u[i]) + 1e-12);
            next[i] = lam[i] + c * (lam[l] - 2 * lam[i] + lam[r])
                    + h.dt * h.rate * (1 - 2 * u[i]) * lam[i];
        }
        d_rate += h.dt * gr;
        d_diff += k * gd;
        entropy += e / n;
        lam.swap(next);
    }
    double norm = 0;
    for (double x : lam) norm += x * x;
    printf("steps %u cells %u\n", h.steps, h.cells);
    printf("dJ/drate      %.10e\n", d_rate);
    printf("dJ/ddiffusion %.10e\n", d_diff);
    printf("|dJ/du0|      %.10e\n", std::sqrt(norm));
    printf("mean entropy  %.10e\n", entropy / h.steps);
    return 0;
}
