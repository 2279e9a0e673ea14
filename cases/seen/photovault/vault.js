'use strict';
// The vault: pack files of many photos, and an index of what lies where.
const fs = require('fs');
const path = require('path');

const PACK = 48 * 1024 * 1024;

class Vault {
  constructor(folder) {
    this.folder = folder;
    fs.mkdirSync(folder, { recursive: true });
    this.index = new Map();
    this.pack = null;
    this.packs = 0;
    this.bytes = 0;
    const index = path.join(folder, 'index.json');
    if (fs.existsSync(index)) {
      for (const [k, v] of Object.entries(JSON.parse(fs.readFileSync(index, 'utf8')))) {
        this.index.set(k, v);
        this.packs = Math.max(this.packs, v[0] + 1);
      }
    }
  }

  has(digest) { return this.index.has(digest); }

  add(digest, data) {
    if (!this.pack || this.pack.size + data.length > PACK) this.nextPack();
    fs.writeSync(this.pack.fd, data, 0, data.length);
    this.index.set(digest, [this.pack.number, this.pack.size, data.length]);
    this.pack.size += data.length;
    this.bytes += data.length;
  }

  nextPack() {
    this.finishPack();
    const number = this.packs++;
    this.pack = { number, size: 0, fd: fs.openSync(path.join(this.folder, `pack-${number}.bin`), 'wx') };
  }

  finishPack() {
    if (!this.pack) return;
    fs.fdatasyncSync(this.pack.fd);       // the index must not speak of what is not on disk
    fs.closeSync(this.pack.fd);
    this.pack = null;
  }

  close() {
    this.finishPack();
    const to = path.join(this.folder, 'index.json');
    const fd = fs.openSync(to + '.new', 'w');
    fs.writeSync(fd, JSON.stringify(Object.fromEntries(this.index)));
    fs.fsyncSync(fd);
    fs.closeSync(fd);
    fs.renameSync(to + '.new', to);
  }
}

module.exports = { Vault };
