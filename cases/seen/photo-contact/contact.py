"""Contact sheet of a folder of camera files."""
import os
import struct
import sys
import zlib

COLS = 11
TILE_W, TILE_H = 80, 65


def load(path, preview_only):
    if preview_only:
        with open(path, "rb", buffering=0) as f:
            head = f.read(64)
            _, _, off, size, w, h = struct.unpack_from("<4sIIIII", head)
            f.seek(off)
            return f.read(size), w, h
    with open(path, "rb") as f:
        data = f.read()
    _, _, off, size, w, h = struct.unpack_from("<4sIIIII", data)
    return data[off:off + size], w, h


def shrink(px, w, h):
    rows = []
    for y in range(TILE_H):
        row = bytearray()
        a = (2 * y) * w * 3
        b = a + w * 3
        for x in range(TILE_W):
            o = x * 6
            for c in (0, 1, 2):
                row.append((px[a + o + c] + px[a + o + 3 + c] + px[b + o + c] + px[b + o + 3 + c]) >> 2)
        rows.append(row)
    return rows


def main():
    base = sys.argv[1]
    preview_only = "--preview-only" in sys.argv
    names = sorted(os.listdir(base + "/photos"))
    tiles = [shrink(*load(f"{base}/photos/{n}", preview_only)) for n in names]
    sheet = bytearray()
    for r in range(0, len(tiles), COLS):
        line = tiles[r:r + COLS]
        for y in range(TILE_H):
            for t in line:
                sheet += t[y]
    with open(base + "/sheet.ppm", "wb") as f:
        f.write(b"P6 %d %d 255\n" % (COLS * TILE_W, len(sheet) // (COLS * TILE_W * 3)))
        f.write(sheet)
    print(len(names), zlib.crc32(sheet))


main()
