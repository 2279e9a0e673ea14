#!/usr/bin/env node
'use strict';
// photovault CARD VAULT: copies the photos that the vault does not have yet, after their digest.
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const { Vault } = require('./vault');

function* photos(folder) {
  const entries = fs.readdirSync(folder, { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const e of entries) {
    const p = path.join(folder, e.name);
    if (e.isDirectory()) yield* photos(p);
    else if (/\.jpe?g$/i.test(e.name)) yield p;
  }
}

let buffer = Buffer.allocUnsafe(4 << 20);

function readWhole(file) {
  const fd = fs.openSync(file, 'r');
  try {
    const { size } = fs.fstatSync(fd);
    if (size > buffer.length) buffer = Buffer.allocUnsafe(size * 2);
    let n = 0;
    while (n < size) {
      const got = fs.readSync(fd, buffer, n, size - n, null);
      if (got === 0) break;
      n += got;
    }
    return buffer.subarray(0, n);
  } finally {
    fs.closeSync(fd);
  }
}

const [card, folder] = process.argv.slice(2);
const vault = new Vault(folder);
let seen = 0, bytes = 0, doubles = 0;
const all = crypto.createHash('sha256');
for (const file of photos(card)) {
  const data = readWhole(file);
  const digest = crypto.createHash('sha256').update(data).digest('hex');
  all.update(digest);
  seen++;
  bytes += data.length;
  if (vault.has(digest)) doubles++;
  else vault.add(digest, data);
}
vault.close();
console.log(`${seen} photos, ${bytes} bytes, ${doubles} twice, ${vault.bytes} bytes stored in ${vault.packs} packs, ${all.digest('hex').slice(0, 16)}`);
