'use strict';
// Saves all attachments of a mailbox into one folder and prints a summary.
const fs = require('fs');
const path = require('path');
const crypto = require('crypto');

const [mbox, outDir] = process.argv.slice(2);

// "invoice.pdf", "invoice (2).pdf", "invoice (3).pdf", ... as a browser does it
function freeName(dir, name) {
  const { name: stem, ext } = path.parse(name);
  let candidate = path.join(dir, name);
  for (let n = 2; fs.existsSync(candidate); n++) {
    candidate = path.join(dir, `${stem} (${n})${ext}`);
  }
  return candidate;
}

function* attachments(text) {
  const head = /^Content-Disposition: attachment; filename="([^"]+)"$/gm;
  let m;
  while ((m = head.exec(text)) !== null) {
    const start = text.indexOf('\n\n', m.index) + 2;
    const end = text.indexOf('\n--', start);
    yield { name: m[1], data: Buffer.from(text.slice(start, end), 'base64') };
    head.lastIndex = end;
  }
}

fs.mkdirSync(outDir, { recursive: true });
const text = fs.readFileSync(mbox, 'latin1');
const digest = crypto.createHash('sha256');
let count = 0;
let bytes = 0;
for (const { name, data } of attachments(text)) {
  const target = freeName(outDir, name);
  fs.writeFileSync(target, data, { flag: 'wx' });
  digest.update(path.basename(target)).update(crypto.createHash('sha256').update(data).digest());
  count++;
  bytes += data.length;
}
console.log(`${count} attachments, ${bytes} bytes, ${digest.digest('hex').slice(0, 16)}`);
