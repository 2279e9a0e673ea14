'use strict';
// bundles the sheets of every theme and prints a digest of the bundles
const fs = require('fs');
const path = require('path');
const crypto = require('crypto');
const { Resolver, DiskLookup, ListedLookup } = require('./resolve');

const IMPORT = /^@import\s+"([^"]+)";/;

class Bundler {
  constructor(root, resolver) {
    this.root = root;
    this.resolver = resolver;
    this.sheets = new Map();
    this.count = { sheets: 0, imports: 0, missing: 0, rules: 0, bytes: 0 };
  }

  load(file) {
    let sheet = this.sheets.get(file);
    if (sheet) return sheet;
    const imports = [];
    const rules = [];
    for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
      const m = IMPORT.exec(line);
      if (m) imports.push(m[1]);
      else if (line) rules.push(line);
    }
    sheet = { file, imports, rules: rules.map(minify) };
    this.sheets.set(file, sheet);
    return sheet;
  }

  collect(file, seen, out) {
    if (seen.has(file)) return;
    seen.add(file);
    const sheet = this.load(file);
    for (const request of sheet.imports) {
      this.count.imports++;
      const found = this.resolver.resolve(request, file);
      if (found) this.collect(found, seen, out);
      else this.count.missing++;
    }
    for (const rule of sheet.rules) out.push(rule);
  }

  bundle(file) {
    const out = [];
    this.collect(file, new Set(), out);
    this.count.sheets++;
    this.count.rules += out.length;
    const text = out.join('');
    this.count.bytes += text.length;
    return text;
  }
}

function minify(rule) {
  return rule.replace(/\s*([{};:,])\s*/g, '$1').replace(/#([0-9a-f])\1([0-9a-f])\2([0-9a-f])\3\b/g, '#$1$2$3');
}

function main() {
  const [root, out, how] = process.argv.slice(2);
  const config = JSON.parse(fs.readFileSync(path.join(root, 'styles.json'), 'utf8'));
  const lookup = how === 'listed' ? new ListedLookup() : new DiskLookup();
  const bundler = new Bundler(root, new Resolver(config.include.map((d) => `${root}/${d}`), lookup));
  const digest = crypto.createHash('sha256');
  const entries = `${root}/${config.entries}`;
  fs.mkdirSync(out, { recursive: true });
  for (const theme of fs.readdirSync(entries).sort()) {
    const sheets = fs.readdirSync(`${entries}/${theme}`).filter((n) => !n.startsWith('_')).sort();
    let css = '';
    for (const sheet of sheets) css += bundler.bundle(`${entries}/${theme}/${sheet}`) + '\n';
    digest.update(css);
    fs.writeFileSync(`${out}/${theme}.css`, css);
  }
  const c = bundler.count;
  console.log(`${c.sheets} sheets ${c.imports} imports ${c.missing} missing ${c.rules} rules ${c.bytes} bytes ${digest.digest('hex').slice(0, 24)}`);
}

main();
