#!/usr/bin/env node
// graph: walk a bundle's import graph from its entry point and report what would be shipped.
'use strict';
const fs = require('fs');
const path = require('path');

const EXT = ['.web.tsx', '.web.ts', '.web.js', '.tsx', '.ts', '.mts', '.jsx', '.mjs', '.cjs', '.js', '.json'];
const opts = process.argv.slice(2).filter((a) => a.startsWith('--'));
const [entry] = process.argv.slice(2).filter((a) => !a.startsWith('--'));
const CACHE = opts.includes('--cache');

// --- file system view: view(dir).isFile(name) ---------------------------------------------
const plainView = (dir) => ({
  isFile: (name) => { const s = fs.statSync(dir + '/' + name, { throwIfNoEntry: false }); return !!s && s.isFile(); },
});

// One listing per directory answers every probe in it, also those for what is not there.
const listings = new Map();
const listedView = (dir) => {
  let v = listings.get(dir);
  if (v === undefined) {
    const kinds = new Map();
    const up = path.dirname(dir);
    if (up === dir || listedView(up).isDir(path.basename(dir))) {
      for (const e of fs.readdirSync(dir, { withFileTypes: true })) kinds.set(e.name, e.isDirectory() ? 'd' : 'f');
    }
    v = { isFile: (n) => kinds.get(n) === 'f', isDir: (n) => kinds.get(n) === 'd' };
    listings.set(dir, v);
  }
  return v;
};
const view = CACHE ? listedView : plainView;

// --- resolution ------------------------------------------------------------------------
const manifests = new Map();
function mainOf(dir) {
  if (CACHE && manifests.has(dir)) return manifests.get(dir);
  const main = JSON.parse(fs.readFileSync(dir + '/package.json', 'utf8')).main;
  if (CACHE) manifests.set(dir, main);
  return main;
}
function asFile(dir, name) {
  const v = view(dir);
  if (v.isFile(name)) return dir + '/' + name;
  for (const e of EXT) if (v.isFile(name + e)) return dir + '/' + name + e;
  return null;
}
function asPath(p) { return asFile(path.dirname(p), path.basename(p)) || asDir(p); }
function asDir(p) {
  if (view(p).isFile('package.json')) {
    const main = mainOf(p);
    const target = main && path.join(p, main);
    const hit = target && asFile(path.dirname(target), path.basename(target));
    if (hit) return hit;
  }
  return asFile(p, 'index');
}
function resolve(spec, from) {
  if (spec.startsWith('.')) return asPath(path.resolve(from, spec));
  for (let dir = from; ; dir = path.dirname(dir)) {
    const top = dir === '/' ? '' : dir;
    const hit = asFile(top + '/node_modules', spec) || asDir(top + '/node_modules/' + spec);
    if (hit) return hit;
    if (dir === '/') return null;
  }
}

// --- graph -----------------------------------------------------------------------------
const IMPORT = /^import\s+(?:.*?\s+from\s+)?'([^']+)';/gm;
const seen = new Map();
const missing = new Set();
let edges = 0;
const queue = [path.resolve(entry)];
while (queue.length) {
  const file = queue.shift();
  if (seen.has(file)) continue;
  const text = fs.readFileSync(file, 'utf8');
  seen.set(file, text.length);
  for (const m of text.matchAll(IMPORT)) {
    edges++;
    const hit = resolve(m[1], path.dirname(file));
    if (!hit) missing.add(m[1]);
    else if (!seen.has(hit)) queue.push(hit);
  }
}
const vendor = [...seen].filter(([f]) => f.includes('/node_modules/'));
const sum = (a) => a.reduce((s, [, n]) => s + n, 0);
console.log(`modules ${seen.size} edges ${edges} missing ${missing.size}`);
console.log(`application ${sum([...seen]) - sum(vendor)} bytes, vendor ${sum(vendor)} bytes in ${vendor.length} packages`);
const byFeature = {};
for (const [f, n] of seen) { const m = /features\/(\w+)/.exec(f); if (m) byFeature[m[1]] = (byFeature[m[1]] || 0) + n; }
for (const [k, n] of Object.entries(byFeature).sort((a, b) => b[1] - a[1]).slice(0, 5)) console.log(k, n);
