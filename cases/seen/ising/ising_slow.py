#!/usr/bin/python3
"""2-D Ising model, Metropolis sweeps over a ladder of temperatures.

RUNDIR/status.json always holds the newest state of the run: the dashboard polls it, and
--resume continues from it.
"""
import json, math, os, random, sys

L = 28
SWEEPS = 260
TEMPERATURES = [1.8, 2.0, 2.1, 2.2, 2.27, 2.35, 2.5, 2.8, 3.2]


class Status:
    def __init__(self, path):
        self.path = path

    def save(self, **state):
        with open(self.path, "w") as f:
            json.dump(state, f)
            f.write("\n")

    def close(self):
        pass


def sweep(spins, boltz, rnd):
    """Checkerboard sweep; returns the change of energy and of magnetisation."""
    n = L * L
    de_total = dm_total = 0
    for colour in (0, 1):
        for y in range(L):
            row = y * L
            up, down = (row - L) % n, (row + L) % n
            for x in range((y + colour) & 1, L, 2):
                s = spins[row + x]
                de = 2 * s * (spins[up + x] + spins[down + x]
                              + spins[row + x - 1 if x else row + L - 1]
                              + spins[row + (x + 1 if x + 1 < L else 0)])
                if de <= 0 or rnd() < boltz[de]:
                    spins[row + x] = -s
                    de_total += de
                    dm_total -= 2 * s
    return de_total, dm_total


def main():
    rundir = sys.argv[1]
    os.makedirs(rundir, exist_ok=True)
    status = Status(os.path.join(rundir, "status.json"))
    rng = random.Random(4242)
    spins = [1] * (L * L)
    energy, mag = -2 * L * L, L * L
    for t in TEMPERATURES:
        boltz = {4: math.exp(-4 / t), 8: math.exp(-8 / t)}
        sum_e = sum_e2 = sum_m = 0.0
        for k in range(1, SWEEPS + 1):
            de, dm = sweep(spins, boltz, rng.random)
            energy += de
            mag += dm
            sum_e += energy
            sum_e2 += energy * energy
            sum_m += abs(mag)
            status.save(temperature=t, sweep=k, energy=energy, mag=mag, sums=[sum_e, sum_e2, sum_m],
                        spins="".join("+" if s > 0 else "-" for s in spins))
        mean = sum_e / SWEEPS
        heat = (sum_e2 / SWEEPS - mean * mean) / (t * t * L * L)
        print("T %.2f  e %+.5f  |m| %.5f  c %.5f" % (t, mean / (L * L), sum_m / SWEEPS / (L * L), heat))
    status.close()


main()
