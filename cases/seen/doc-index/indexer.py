"""Builds a word index of scanned documents; can be stopped and resumed."""
import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor


def read_document(folder):
    pages = []
    for page in sorted(os.listdir(folder)):
        with open(os.path.join(folder, page)) as f:
            pages.append(f.read())
    return "\n".join(pages)


def save_progress(path, done, words):
    with open(path + ".tmp", "w") as f:
        json.dump({"done": done, "words": words}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".tmp", path)


def documents_one_by_one(folders):
    for folder in folders:
        yield read_document(folder)


def documents_ahead(folders):
    with ThreadPoolExecutor(8) as pool:
        yield from pool.map(read_document, folders)


def main():
    mode, folder = sys.argv[1:]
    repaired = mode == "repaired"
    root = os.path.join(folder, "docs")
    progress = os.path.join(folder, "progress.json")
    folders = [os.path.join(root, name) for name in sorted(os.listdir(root))]
    words = Counter()
    documents = documents_ahead(folders) if repaired else documents_one_by_one(folders)
    done = 0
    for text in documents:
        words.update(text.split())
        done += 1
        if not repaired or done % 80 == 0:
            save_progress(progress, done, words)
    save_progress(progress, done, words)
    top, times = words.most_common(1)[0]
    print(f"{done} documents, {sum(words.values())} words, {len(words)} different, most often {top} {times}")


main()
