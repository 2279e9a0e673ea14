// A job queue in a spool folder: each job is a file in pending/, which moves to
// running/ while it is worked on and leaves a result in done/.
// usage: node jobspool.js JOBS SPOOL
'use strict';
const fs = require('fs');
const path = require('path');
const crypto = require('crypto');

class Spool {
  constructor(root) {
    this.pending = path.join(root, 'pending');
    this.running = path.join(root, 'running');
    this.done = path.join(root, 'done');
    for (const d of [this.pending, this.running, this.done]) fs.mkdirSync(d, { recursive: true });
    this.seq = 0;
  }

  submit(job) {
    const name = `${job.kind}-${String(this.seq++).padStart(6, '0')}.json`;
    const tmp = path.join(this.running, `.new-${name}`);
    fs.writeFileSync(tmp, JSON.stringify(job));
    fs.renameSync(tmp, path.join(this.pending, name));
  }

  // The job that has waited longest, or null.
  oldest() {
    let best = null;
    for (const name of fs.readdirSync(this.pending)) {
      const { mtimeMs } = fs.statSync(path.join(this.pending, name));
      if (!best || mtimeMs < best.mtimeMs || (mtimeMs === best.mtimeMs && name < best.name)) {
        best = { name, mtimeMs };
      }
    }
    return best && best.name;
  }

  // Takes the next job out of pending/, or returns null when there is none.
  claim() {
    for (;;) {
      const name = this.oldest();
      if (!name) return null;
      try {
        fs.renameSync(path.join(this.pending, name), path.join(this.running, name));
      } catch (e) {
        if (e.code === 'ENOENT') continue; // another worker was faster
        throw e;
      }
      return { name, job: JSON.parse(fs.readFileSync(path.join(this.running, name), 'utf8')) };
    }
  }

  finish(name, result) {
    fs.writeFileSync(path.join(this.done, name), JSON.stringify(result));
    fs.unlinkSync(path.join(this.running, name));
  }
}

function work(spool, job) {
  let digest = JSON.stringify(job);
  for (let i = 0; i < 60; i++) digest = crypto.createHash('sha256').update(digest).digest('hex');
  const total = job.items.reduce((a, b) => a + b, 0);
  // A large invoice is followed by a mail to the customer.
  if (job.kind === 'invoice' && total > 100000) {
    spool.submit({ kind: 'mail', customer: job.customer, items: [total] });
  }
  return { total, digest };
}

const [jobs, root] = process.argv.slice(2);
const spool = new Spool(root);
for (const line of fs.readFileSync(jobs, 'utf8').split('\n')) {
  if (line) spool.submit(JSON.parse(line));
}
let count = 0;
let total = 0;
let mark = 0;
for (let next; (next = spool.claim()); count++) {
  const result = work(spool, next.job);
  spool.finish(next.name, result);
  total += result.total;
  mark = (mark + parseInt(result.digest.slice(0, 8), 16)) % 0x100000000;
}
console.log(`jobs ${count} total ${total} mark ${mark.toString(16)}`);
