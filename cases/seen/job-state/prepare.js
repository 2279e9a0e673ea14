const fs = require('fs');
const jobs = {};
for (let i = 0; i < 5000; i++) {
  jobs['job-' + i] = { id: i, status: 'queued', attempts: 0, command: `render --scene ${i % 90} --frame ${i * 7 % 2400} --samples 256 --denoise`, owner: `user${i % 37}@example.org`, tags: ['night', 'farm' + i % 5, 'p' + i % 3], created: 1700000000000 + i * 977, note: 'waiting for a free node in the pool' };
}
fs.writeFileSync(process.argv[2] + '/jobs.json', JSON.stringify(jobs));
