import multiprocessing
import random

from features import orientations

_dataset = None


def _init(dataset):
    global _dataset
    _dataset = dataset


def _collate(indices):
    labels, pixels = [], []
    for i in indices:
        label, patch = _dataset[i]
        labels.append(label)
        pixels.append(patch)
    return labels, [bytes(p) for p in pixels], [orientations(p) for p in pixels]


class Loader:
    def __init__(self, dataset, batch, workers, seed):
        self.dataset, self.batch, self.workers, self.seed = dataset, batch, workers, seed

    def epoch(self, n, limit):
        order = list(range(len(self.dataset)))
        random.Random(self.seed + n).shuffle(order)
        order = order[:limit]
        batches = [order[i:i + self.batch] for i in range(0, len(order), self.batch)]
        context = multiprocessing.get_context("fork")
        with context.Pool(self.workers, _init, (self.dataset,)) as pool:
            yield from pool.imap(_collate, batches)
