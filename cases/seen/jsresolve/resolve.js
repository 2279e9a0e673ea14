'use strict';
const path = require('path');

const EXTENSIONS = ['.ts', '.tsx', '.mjs', '.jsx', '.cjs', '.js', '.json'];
const MAIN_FIELDS = ['browser', 'module', 'main'];

class Resolver {
  constructor(host) {
    this.host = host;
    this.manifests = new Map();
  }

  manifest(dir) {
    let m = this.manifests.get(dir);
    if (m === undefined) {
      const file = path.join(dir, 'package.json');
      m = this.host.isFile(file) ? JSON.parse(this.host.read(file)) : null;
      this.manifests.set(dir, m);
    }
    return m;
  }

  asFile(p) {
    if (path.extname(p) && this.host.isFile(p)) return p;
    for (const e of EXTENSIONS) {
      if (this.host.isFile(p + e)) return p + e;
    }
    return null;
  }

  asDirectory(p) {
    if (!this.host.isDirectory(p)) return null;
    const m = this.manifest(p);
    if (m) {
      for (const f of MAIN_FIELDS) {
        if (typeof m[f] === 'string') {
          const r = this.asFile(path.join(p, m[f])) || this.asDirectory(path.join(p, m[f]));
          if (r) return r;
        }
      }
    }
    return this.asFile(path.join(p, 'index'));
  }

  resolve(request, from) {
    if (request.startsWith('.')) {
      const p = path.resolve(from, request);
      return this.asFile(p) || this.asDirectory(p);
    }
    for (let dir = from; ; dir = path.dirname(dir)) {
      if (path.basename(dir) !== 'node_modules') {
        const p = path.join(dir, 'node_modules', request);
        const r = this.asFile(p) || this.asDirectory(p);
        if (r) return r;
      }
      if (dir === this.host.root || dir === path.dirname(dir)) return null;
    }
  }
}

module.exports = { Resolver };
