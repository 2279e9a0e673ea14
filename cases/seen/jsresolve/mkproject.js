'use strict';
// A workspace: packages nested some folders deep, their dependencies hoisted to the node_modules of the root.
const fs = require('fs');
const path = require('path');
const root = process.argv[2];
let seed = 12345;
const rnd = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return (seed >>> 8) % n; };
const put = (name, text) => {
  const p = path.join(root, name);
  fs.mkdirSync(path.dirname(p), { recursive: true });
  fs.writeFileSync(p, text);
};
const deps = [];
for (let i = 0; i < 140; i++) {
  const name = (i % 3 ? '' : '@vendor/') + 'lib-' + i;
  deps.push(name);
  const main = i % 4 ? 'lib/main' : undefined;
  put(`node_modules/${name}/package.json`, JSON.stringify({ name, version: '1.0.' + i, main }));
  put(`node_modules/${name}/${main || 'index'}.js`, `exports.id = ${i};\n`);
  for (const s of ['map', 'merge', 'format']) put(`node_modules/${name}/fp/${s}.js`, `exports.${s} = ${i};\n`);
}
const entry = [];
for (let p = 0; p < 30; p++) {
  const base = `packages/apps/area-${p % 6}/app-${p}/src/features`;
  put(`packages/apps/area-${p % 6}/app-${p}/package.json`, JSON.stringify({ name: 'app-' + p, version: '0.0.1' }));
  for (let m = 0; m < 30; m++) {
    const lines = [];
    for (let k = 0; k < 14; k++) {
      const d = deps[rnd(deps.length)];
      lines.push(`const d${k} = require('${rnd(3) ? d : d + '/fp/' + ['map', 'merge', 'format'][rnd(3)]}');`);
    }
    for (let k = m + 1; k < Math.min(m + 4, 30); k++) lines.push(`const m${k} = require('../feature-${k}/view');`);
    for (let k = 0; k < 20; k++) lines.push(`exports.f${k} = (a) => a * ${rnd(1000)} + ${k};`);
    put(`${base}/feature-${m}/view.js`, lines.join('\n') + '\n');
  }
  entry.push(`require('./${base}/feature-0/view');`);
}
put('index.js', entry.join('\n') + '\n');
