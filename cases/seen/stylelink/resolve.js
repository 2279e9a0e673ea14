'use strict';
// finds the file an @import means: beside the importing sheet, then in each include folder
const fs = require('fs');
const path = require('path');

// in the order the language wants them
function spellings(request) {
  const dir = path.posix.dirname(request);
  const base = path.posix.basename(request);
  const all = [];
  for (const ext of ['.scss', '.sass', '.css']) {
    all.push(path.posix.join(dir, base + ext), path.posix.join(dir, '_' + base + ext));
  }
  for (const ext of ['.scss', '.sass']) {
    all.push(path.posix.join(dir, base, 'index' + ext), path.posix.join(dir, base, '_index' + ext));
  }
  return all;
}

class DiskLookup {
  isFile(file) {
    const st = fs.statSync(file, { throwIfNoEntry: false });
    return st !== undefined && st.isFile();
  }
}

class ListedLookup {
  constructor() {
    this.folders = new Map();
  }
  names(folder) {
    let set = this.folders.get(folder);
    if (set === undefined) {
      set = new Map();
      const parent = path.dirname(folder);
      // a folder that its parent does not list is not there
      if (parent === folder || parent === '.' || this.names(parent).get(path.basename(folder)) === 'd') {
        try {
          for (const e of fs.readdirSync(folder, { withFileTypes: true })) set.set(e.name, e.isDirectory() ? 'd' : 'f');
        } catch (e) {
          if (e.code !== 'ENOENT' && e.code !== 'ENOTDIR') throw e;
        }
      }
      this.folders.set(folder, set);
    }
    return set;
  }
  isFile(file) {
    const cut = file.lastIndexOf('/');
    return this.names(file.slice(0, cut)).get(file.slice(cut + 1)) === 'f';
  }
}

class Resolver {
  constructor(include, lookup) {
    this.include = include;
    this.lookup = lookup;
  }
  resolve(request, from) {
    const tries = spellings(request);
    for (const folder of [path.dirname(from), ...this.include]) {
      for (const t of tries) {
        const file = `${folder}/${t}`;
        if (this.lookup.isFile(file)) return file;
      }
    }
    return null;
  }
}

module.exports = { Resolver, DiskLookup, ListedLookup };
