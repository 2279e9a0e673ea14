"""Epoch over a zip data set."""
import random
import sys
import zipfile


class ZipSamples:
    def __init__(self, path, keep_open):
        self.path = path
        self.keep_open = keep_open
        self._zip = None
        with zipfile.ZipFile(path) as z:
            self.names = z.namelist()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        name = self.names[i]
        if self.keep_open:
            if self._zip is None:
                self._zip = zipfile.ZipFile(self.path)
            data = self._zip.read(name)
        else:
            with zipfile.ZipFile(self.path) as z:
                data = z.read(name)
        return self.normalise(data), int(name[5])

    @staticmethod
    def normalise(data):
        mean = sum(data) / len(data)
        var = sum((b - mean) ** 2 for b in data) / len(data)
        return [(b - mean) / var ** 0.5 for b in data]


ds = ZipSamples(sys.argv[1], "--keep-open" in sys.argv)
order = list(range(len(ds)))
random.Random(1).shuffle(order)
total, labels = 0.0, 0
for i in order[:110]:
    x, y = ds[i]
    total += x[0] * x[-1]
    labels += y
print(len(ds), labels, round(total, 6))
