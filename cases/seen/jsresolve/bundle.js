'use strict';
// bundle.js [--listings] ROOT OUT: follows require() from ROOT/index.js and writes one script.
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { Resolver } = require('./resolve');
const { PlainHost, ListingHost } = require('./host');

const args = process.argv.slice(2);
const listings = args[0] === '--listings' && Boolean(args.shift());
const root = path.resolve(args[0]);
const host = listings ? new ListingHost(root) : new PlainHost(root);
const resolver = new Resolver(host);

const ids = new Map();
const modules = [];
let edges = 0;

function add(file) {
  if (!ids.has(file)) {
    ids.set(file, modules.length);
    modules.push({ file, code: '' });
  }
  return ids.get(file);
}

add(path.join(root, 'index.js'));
for (let i = 0; i < modules.length; i++) {
  const m = modules[i];
  const dir = path.dirname(m.file);
  m.code = host.read(m.file).replace(/\brequire\('([^']+)'\)/g, (_, request) => {
    const target = resolver.resolve(request, dir);
    if (!target) throw new Error(`${m.file}: cannot resolve ${request}`);
    edges++;
    return `__r(${add(target)})`;
  });
}

const out = ['const __m = {}, __d = [];\n'];
for (const [i, m] of modules.entries()) out.push(`__d[${i}] = (exports) => {\n${m.code}};\n`);
out.push('const __r = (i) => __m[i] || (__d[i](__m[i] = {}), __m[i]);\n__r(0);\n');
const text = out.join('');
fs.writeFileSync(args[1], text);
console.log(`${modules.length} modules, ${edges} imports, ${text.length} bytes, ${crypto.createHash('sha1').update(text).digest('hex')}`);
