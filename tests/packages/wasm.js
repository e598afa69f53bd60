/* The command as WebAssembly outside a browser: node wasm.js MODULE. A line of JSON with words, files and environment comes in, a line with exit
 * code and output goes out; the system around it is the page's own (web/app/wasi.js), every run a fresh instance of the one compiled program. */
'use strict';
const fs = require('fs'), path = require('path'), readline = require('readline'), vm = require('vm');
vm.runInThisContext(fs.readFileSync(path.join(__dirname, '..', '..', 'web', 'app', 'wasi.js'), 'utf8') + '\nglobalThis.wasiSystem = wasiSystem;');
const program = new WebAssembly.Module(fs.readFileSync(process.argv[2]));

readline.createInterface({ input: process.stdin }).on('line', line => {
  const { words, files, environment } = JSON.parse(line);
  const folder = new Map(files.map(file => [file.replace(/^\/+/, ''), new Uint8Array(fs.readFileSync(file))]));
  const system = wasiSystem(folder, ['oomsight', ...words], environment);
  const instance = new WebAssembly.Instance(program, { wasi_snapshot_preview1: system.imports });
  const { code, out, err } = system.run(instance);
  process.stdout.write(JSON.stringify({ code, out, err }) + '\n');
});
