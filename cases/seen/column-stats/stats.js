// Sums of the columns of a CSV file, for the dashboard.
'use strict';
const fs = require('fs');
const path = require('path');

async function main() {
  const [mode, dir] = process.argv.slice(2);
  // "Small chunks keep the memory of the container low."
  const options = mode === 'repaired' ? {} : { highWaterMark: 256 };
  const stream = fs.createReadStream(path.join(dir, 'measure.csv'), options);
  const sums = [0, 0, 0, 0, 0];
  let rows = 0, column = 0, value = 0, header = true;
  for await (const chunk of stream) {
    for (let i = 0; i < chunk.length; i++) {
      const c = chunk[i];
      if (header) {
        header = c !== 10;
      } else if (c === 44 || c === 10) {
        sums[column++] += value;
        value = 0;
        if (c === 10) {
          rows++;
          column = 0;
        }
      } else {
        value = value * 10 + c - 48;
      }
    }
  }
  console.log(`${rows} rows: ${sums.join(' ')}`);
}

main();
