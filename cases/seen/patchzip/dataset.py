import os
import zipfile


class ZipPatches:
    """Patches in a zip. A ZipFile does not survive the fork of a loader's workers (they would share its offset)."""

    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as z:
            self.names = z.read("train/index.txt").decode().split()

    def __len__(self):
        return len(self.names)

    def _read(self, name):
        with zipfile.ZipFile(self.path) as z:
            return z.read(name)

    def __getitem__(self, i):
        raw = self._read(self.names[i])
        return raw[0], memoryview(raw)[1:]


class ZipPatchesPerWorker(ZipPatches):
    """The same with one open archive in each worker process."""

    _zip = None
    _pid = None

    def _read(self, name):
        if self._pid != os.getpid():
            self._zip, self._pid = zipfile.ZipFile(self.path), os.getpid()
        return self._zip.read(name)
