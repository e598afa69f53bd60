/* The command in a thread of its own: a message brings the compiled program, words and files, the answer is what the command printed. Every run is a
 * new instance of the same compiled program, so that none leaves anything behind. */
'use strict';
importScripts('wasi.js');

const UNPACKED_MOST = 2 ** 31; /* what a gzip file may grow to */

async function unpacked(file) {
  if (!(file instanceof Blob)) return file;
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (head[0] !== 0x1f || head[1] !== 0x8b || typeof DecompressionStream === 'undefined') return file;
  let total = 0;
  const counted = new TransformStream({
    transform(part, out) {
      total += part.length;
      if (total > UNPACKED_MOST) throw new Error('unpacked it is longer than 2 GiB');
      out.enqueue(part);
    },
  });
  return new Response(file.stream().pipeThrough(new DecompressionStream('gzip')).pipeThrough(counted)).blob();
}

self.onmessage = async ({ data: { id, module, args, files, environment } }) => {
  const started = performance.now();
  let told = 0;
  function progress(read, size) {
    if (read - told < 8 << 20 && read < size) return;
    told = read;
    if (size > 8 << 20) self.postMessage({ id, read, size });
  }
  try {
    const folder = new Map();
    for (const [path, file] of files) folder.set(path, typeof file === 'string' ? new TextEncoder().encode(file) : await unpacked(file));
    const system = wasiSystem(folder, ['oomsight', ...args], environment || {}, progress);
    const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: system.imports });
    self.postMessage({ id, ...system.run(instance), ms: performance.now() - started });
  } catch (error) {
    const why = error instanceof WebAssembly.RuntimeError ? 'the program was stopped (' + error.message + ')' : error.message;
    self.postMessage({ id, code: 4, out: '', err: 'oomsight: ' + why + '\n', ms: performance.now() - started });
  }
};
