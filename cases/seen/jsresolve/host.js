'use strict';
const fs = require('fs');
const path = require('path');

class PlainHost {
  constructor(root) { this.root = root; }
  read(p) { return fs.readFileSync(p, 'utf8'); }
  isFile(p) { const s = fs.statSync(p, { throwIfNoEntry: false }); return s !== undefined && s.isFile(); }
  isDirectory(p) { const s = fs.statSync(p, { throwIfNoEntry: false }); return s !== undefined && s.isDirectory(); }
}

// Answers from listings: each folder is read once, and one that its parent does not list is not read at all.
class ListingHost extends PlainHost {
  constructor(root) { super(root); this.listings = new Map(); }

  listing(dir) {
    let l = this.listings.get(dir);
    if (l !== undefined) return l;
    l = null;
    if (dir === this.root || this.kind(dir) === 'd') {
      l = new Map();
      for (const e of fs.readdirSync(dir, { withFileTypes: true })) l.set(e.name, e.isDirectory() ? 'd' : 'f');
    }
    this.listings.set(dir, l);
    return l;
  }

  kind(p) {
    const l = this.listing(path.dirname(p));
    return l ? l.get(path.basename(p)) : undefined;
  }

  isFile(p) { return this.kind(p) === 'f'; }
  isDirectory(p) { return p === this.root || this.kind(p) === 'd'; }
}

module.exports = { PlainHost, ListingHost };
