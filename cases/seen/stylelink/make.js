'use strict';
// makes a monorepo of themes: shared style packages and the sheets that import from them
const fs = require('fs');
const path = require('path');

const root = process.argv[2];
let seed = 20240117;
const next = (n) => { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; return Math.floor((seed / 4294967296) * n); };

const packages = [];
const partials = [];
for (let p = 0; p < 24; p++) {
  const name = `pkg-${String(p).padStart(2, '0')}`;
  packages.push(`vendor/${name}/styles`);
  for (let g = 0; g < 10; g++) {
    const dir = path.join(root, 'vendor', name, 'styles', `g${p}x${g}`);
    fs.mkdirSync(dir, { recursive: true });
    for (let f = 0; f < 4; f++) {
      const kind = ['_part%.scss', 'part%.scss', '_part%.sass', 'part%.css'][next(4)];
      const body = [`$size-${f}: ${1 + next(40)}px;`, `.p${p}g${g}f${f} { margin: ${next(30)}px; color: #${next(0xffffff).toString(16).padStart(6, '0')} }`];
      for (let i = 0; i < 12; i++) body.push(`.p${p}g${g}f${f}-${i} { padding: ${next(20)}px ${next(20)}px; top: ${next(99)}px }`);
      fs.writeFileSync(path.join(dir, kind.replace('%', String(f))), body.join('\n') + '\n');
      partials.push(`g${p}x${g}/part${f}`);
    }
  }
}
fs.writeFileSync(path.join(root, 'styles.json'), JSON.stringify({ entries: 'themes', include: packages }, null, 2));
for (let t = 0; t < 60; t++) {
  const dir = path.join(root, 'themes', `theme-${String(t).padStart(3, '0')}`);
  fs.mkdirSync(dir, { recursive: true });
  for (let s = 0; s < 12; s++) {
    const lines = [];
    const own = `local${s}`;
    fs.writeFileSync(path.join(dir, `_${own}.scss`), `.${own} { width: ${next(900)}px }\n`);
    lines.push(`@import "${own}";`);
    for (let i = 0; i < 10; i++) lines.push(`@import "${partials[next(partials.length)]}";`);
    if (next(12) === 0) lines.push('@import "legacy/grid";');
    for (let r = 0; r < 60; r++) lines.push(`.t${t} .s${s}-${r} { left: ${next(500)}px; border: ${next(4)}px solid #${next(0xffffff).toString(16).padStart(6, '0')} }`);
    fs.writeFileSync(path.join(dir, `sheet${s}.scss`), lines.join('\n') + '\n');
  }
}
