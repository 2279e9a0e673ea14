import math

SIDE = 64
BINS = 9


def orientations(patch):
    """The histogram of gradient directions, weighted by their length."""
    bins = [0.0] * BINS
    for y in range(1, SIDE - 1):
        row = y * SIDE
        for x in range(1, SIDE - 1):
            at = row + x
            dx = patch[at + 1] - patch[at - 1]
            dy = patch[at + SIDE] - patch[at - SIDE]
            angle = math.atan2(dy, dx) % math.pi
            bins[min(int(angle * BINS / math.pi), BINS - 1)] += math.hypot(dx, dy)
    norm = math.sqrt(sum(b * b for b in bins)) or 1.0
    return [b / norm for b in bins]
