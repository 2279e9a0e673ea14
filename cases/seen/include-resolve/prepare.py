"""A vendored source tree: 70 include folders and the includes of 450 sources."""
import os, random, sys

DIRS, HEADERS, SOURCES, INCLUDES = 70, 40, 450, 36
d = sys.argv[1]
r = random.Random(101)
folders, headers = [], []
for i in range(DIRS):
    folder = "third_party/lib%02d/src/main/include/lib%02d" % (i, i)
    folders.append(folder)
    os.makedirs(os.path.join(d, "tree", folder), exist_ok=True)
    for j in range(HEADERS):
        name = "lib%02d_part%02d.h" % (i, j)
        headers.append(name)
        with open(os.path.join(d, "tree", folder, name), "w") as f:
            f.write("#pragma once\nint lib%02d_part%02d(void);\n" % (i, j))
with open(os.path.join(d, "include_path.txt"), "w") as f:
    f.write("\n".join(folders) + "\n")
with open(os.path.join(d, "includes.txt"), "w") as f:
    for i in range(SOURCES):
        f.write("src/file%03d.c: %s\n" % (i, " ".join(r.sample(headers, INCLUDES))))
