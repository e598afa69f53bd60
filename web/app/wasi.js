/* What a WebAssembly program asks of its system (WASI preview 1), answered from an in-memory folder: files are bytes or the
 * browser's own Blobs, which are read a piece at a time so that a log of any length takes no memory. Nothing can be written
 * but standard output and error, and there is no network to ask for. */
'use strict';

const WASI_OK = 0, WASI_BADF = 8, WASI_INVAL = 28, WASI_ISDIR = 31, WASI_NOENT = 44, WASI_NOSYS = 52, WASI_NOTDIR = 54, WASI_ROFS = 69, WASI_SPIPE = 70;
const WASI_CHARACTERS = 2, WASI_FOLDER = 3, WASI_FILE = 4;
const WASI_OUTPUT_MOST = 96 << 20; /* what a report may grow to */

class WasiExit extends Error {
  constructor(code) { super('exit ' + code); this.code = code; }
}

/* `files`: a Map of paths without a leading slash to Uint8Array or Blob; `-` is standard input. `progress(read, size)` is told how far a Blob has been read. */
function wasiSystem(files, args, environment, progress) {
  const coder = new TextEncoder(), decoder = new TextDecoder();
  const output = { 1: [], 2: [] };
  let memory = null, written = 0;
  const view = () => new DataView(memory.buffer);
  const bytes = (at, len) => new Uint8Array(memory.buffer, at, len);
  const open = new Map([[0, files.has('-') ? { kind: WASI_FILE, file: files.get('-'), at: 0 } : { kind: WASI_CHARACTERS }], [1, { kind: WASI_CHARACTERS }], [2, { kind: WASI_CHARACTERS }], [3, { kind: WASI_FOLDER, path: '' }]]);
  let nextFd = 4;

  const sizeOf = file => file instanceof Uint8Array ? file.length : file.size;
  function plain(base, at, len) {
    const parts = base ? base.split('/') : [];
    for (const part of decoder.decode(bytes(at, len).slice()).split('/')) {
      if (part === '' || part === '.') continue;
      if (part === '..') parts.pop(); else parts.push(part);
    }
    return parts.join('/');
  }
  function inside(path) { /* names in a folder, once each; null: there is no such folder */
    const start = path ? path + '/' : '', names = new Set();
    for (const name of files.keys()) if (name.startsWith(start)) names.add(name.slice(start.length).split('/')[0]);
    return names.size || !path ? [...names].sort() : null;
  }
  function find(path) {
    if (files.has(path)) return { kind: WASI_FILE, path, file: files.get(path), at: 0 };
    return inside(path) ? { kind: WASI_FOLDER, path } : null;
  }
  function putStat(at, thing) {
    bytes(at, 64).fill(0);
    const to = view();
    to.setUint8(at + 16, thing.kind);
    to.setBigUint64(at + 24, 1n, true);
    to.setBigUint64(at + 32, BigInt(thing.file ? sizeOf(thing.file) : 0), true);
  }
  function piece(file, from, len) {
    if (file instanceof Uint8Array) return file.subarray(from, from + len);
    const got = new Uint8Array(new FileReaderSync().readAsArrayBuffer(file.slice(from, from + len)));
    if (progress) progress(from + got.length, file.size);
    return got;
  }
  function readInto(thing, from, list, count, ret) {
    let total = 0;
    for (let i = 0; i < count; i++) {
      const at = view().getUint32(list + 8 * i, true), len = view().getUint32(list + 8 * i + 4, true);
      if (!len) continue;
      const got = piece(thing.file, from + total, len);
      bytes(at, got.length).set(got);
      total += got.length;
      if (got.length < len) break;
    }
    view().setUint32(ret, total, true);
    return total;
  }
  function putList(words, pointers, at) {
    for (const word of words) {
      const raw = coder.encode(word + '\0');
      view().setUint32(pointers, at, true);
      bytes(at, raw.length).set(raw);
      pointers += 4; at += raw.length;
    }
    return WASI_OK;
  }
  function putSizes(words, count, size) {
    view().setUint32(count, words.length, true);
    view().setUint32(size, words.reduce((sum, word) => sum + coder.encode(word).length + 1, 0), true);
    return WASI_OK;
  }
  const variables = Object.entries(environment).map(([name, value]) => name + '=' + value);

  const calls = {
    args_get: (pointers, at) => putList(args, pointers, at),
    args_sizes_get: (count, size) => putSizes(args, count, size),
    environ_get: (pointers, at) => putList(variables, pointers, at),
    environ_sizes_get: (count, size) => putSizes(variables, count, size),
    clock_res_get: (id, ret) => { view().setBigUint64(ret, 1000000n, true); return WASI_OK; },
    clock_time_get: (id, precision, ret) => {
      const ms = id === 0 ? Date.now() : performance.now();
      view().setBigUint64(ret, BigInt(Math.round(ms * 1e6)), true);
      return WASI_OK;
    },
    random_get: (at, len) => {
      for (let done = 0; done < len; done += 65536) crypto.getRandomValues(bytes(at + done, Math.min(65536, len - done)));
      return WASI_OK;
    },
    sched_yield: () => WASI_OK,
    proc_exit: code => { throw new WasiExit(code); },
    fd_advise: () => WASI_OK,
    fd_close: fd => open.delete(fd) ? WASI_OK : WASI_BADF,
    fd_fdstat_get: (fd, ret) => {
      const thing = open.get(fd);
      if (!thing) return WASI_BADF;
      bytes(ret, 24).fill(0);
      view().setUint8(ret, thing.kind);
      view().setBigUint64(ret + 8, 0x1fffffffn, true);
      view().setBigUint64(ret + 16, 0x1fffffffn, true);
      return WASI_OK;
    },
    fd_fdstat_set_flags: () => WASI_OK,
    fd_filestat_get: (fd, ret) => {
      const thing = open.get(fd);
      if (!thing) return WASI_BADF;
      putStat(ret, thing);
      return WASI_OK;
    },
    fd_prestat_get: (fd, ret) => {
      if (fd !== 3) return WASI_BADF;
      view().setUint32(ret, 0, true);
      view().setUint32(ret + 4, 1, true);
      return WASI_OK;
    },
    fd_prestat_dir_name: (fd, at) => { bytes(at, 1)[0] = 0x2f; return fd === 3 ? WASI_OK : WASI_BADF; },
    fd_read: (fd, list, count, ret) => {
      const thing = open.get(fd);
      if (!thing) return WASI_BADF;
      if (thing.kind === WASI_FOLDER) return WASI_ISDIR;
      if (!thing.file) { view().setUint32(ret, 0, true); return WASI_OK; }
      thing.at += readInto(thing, thing.at, list, count, ret);
      return WASI_OK;
    },
    fd_pread: (fd, list, count, offset, ret) => {
      const thing = open.get(fd);
      if (!thing || !thing.file) return WASI_BADF;
      readInto(thing, Number(offset), list, count, ret);
      return WASI_OK;
    },
    fd_seek: (fd, offset, whence, ret) => {
      const thing = open.get(fd);
      if (!thing) return WASI_BADF;
      if (!thing.file) return WASI_SPIPE;
      const to = Number(offset) + (whence === 0 ? 0 : whence === 1 ? thing.at : sizeOf(thing.file));
      if (to < 0) return WASI_INVAL;
      thing.at = to;
      view().setBigUint64(ret, BigInt(to), true);
      return WASI_OK;
    },
    fd_tell: (fd, ret) => calls.fd_seek(fd, 0n, 1, ret),
    fd_readdir: (fd, at, len, cookie, ret) => {
      const thing = open.get(fd);
      if (!thing || thing.kind !== WASI_FOLDER) return WASI_NOTDIR;
      const names = ['.', '..', ...(inside(thing.path) || [])];
      let used = 0;
      for (let i = Number(cookie); i < names.length && used < len; i++) {
        const name = coder.encode(names[i]), entry = new Uint8Array(24 + name.length), to = new DataView(entry.buffer);
        const child = find(plainJoin(thing.path, names[i]));
        to.setBigUint64(0, BigInt(i + 1), true);
        to.setBigUint64(8, BigInt(i + 1), true);
        to.setUint32(16, name.length, true);
        to.setUint8(20, child ? child.kind : WASI_FOLDER);
        entry.set(name, 24);
        const part = entry.subarray(0, len - used);
        bytes(at + used, part.length).set(part);
        used += part.length;
      }
      view().setUint32(ret, used, true);
      return WASI_OK;
    },
    fd_write: (fd, list, count, ret) => {
      if (!output[fd]) return open.has(fd) ? WASI_ROFS : WASI_BADF;
      let total = 0;
      for (let i = 0; i < count; i++) {
        const at = view().getUint32(list + 8 * i, true), len = view().getUint32(list + 8 * i + 4, true);
        output[fd].push(bytes(at, len).slice());
        total += len;
      }
      written += total;
      if (written > WASI_OUTPUT_MOST) throw new Error('the report is longer than ' + (WASI_OUTPUT_MOST >> 20) + ' MB');
      view().setUint32(ret, total, true);
      return WASI_OK;
    },
    path_filestat_get: (fd, flags, at, len, ret) => {
      const base = open.get(fd), thing = base && find(plain(base.path, at, len));
      if (!base || base.kind !== WASI_FOLDER) return WASI_BADF;
      if (!thing) return WASI_NOENT;
      putStat(ret, thing);
      return WASI_OK;
    },
    path_open: (fd, lookup, at, len, how, rights, inherited, flags, ret) => {
      const base = open.get(fd);
      if (!base || base.kind !== WASI_FOLDER) return WASI_BADF;
      const thing = find(plain(base.path, at, len));
      if (!thing) return how & 1 ? WASI_ROFS : WASI_NOENT;
      if (how & 2 && thing.kind !== WASI_FOLDER) return WASI_NOTDIR;
      open.set(nextFd, thing);
      view().setUint32(ret, nextFd++, true);
      return WASI_OK;
    },
    path_readlink: () => WASI_INVAL,
  };
  function plainJoin(folder, name) {
    if (name === '.') return folder;
    if (name === '..') return folder.split('/').slice(0, -1).join('/');
    return folder ? folder + '/' + name : name;
  }
  const text = parts => {
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { whole.set(part, at); at += part.length; }
    return decoder.decode(whole);
  };

  return {
    imports: new Proxy(calls, { get: (known, name) => known[name] || (() => WASI_NOSYS), has: () => true }),
    run(instance) {
      memory = instance.exports.memory;
      let code = 0;
      try { instance.exports._start(); } catch (error) {
        if (!(error instanceof WasiExit)) throw error;
        code = error.code;
      }
      return { code, out: text(output[1]), err: text(output[2]), pages: memory.buffer.byteLength >> 16 };
    },
  };
}
