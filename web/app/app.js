/* The two boxes: what was pasted or dropped becomes a run of the command in the worker, what it prints becomes the report. Text of
 * strangers is only ever put in as text; the report lives in a frame that has no rights here. */
'use strict';
const $ = id => document.getElementById(id);
const HUB = 'https://huggingface.co/';
const CONFIG_MOST = 4 << 20, SNIFF = 64 << 10;

/* ---- the command in its worker ---- */
/* Fetched and compiled beside everything else that is loaded, once: a worker that was stopped is replaced by one that gets the same program. */
const program = (async () => {
  const answer = await fetch('oomsight.wasm');
  if (!answer.ok) throw new Error('oomsight.wasm: ' + answer.status);
  /* compiled while it comes, and kept compiled by the browser, where the server knows the type */
  if ((answer.headers.get('Content-Type') || '').startsWith('application/wasm')) return WebAssembly.compileStreaming(answer);
  return WebAssembly.compile(await answer.arrayBuffer());
})();
program.catch(() => {}); /* told by the first run */
let worker = null, number = 0;
const waiting = new Map();
function start() {
  worker = new Worker('worker.js');
  worker.onmessage = ({ data }) => {
    const who = waiting.get(data.id);
    if (!who) return;
    if (data.read !== undefined) return who.progress(data.read, data.size);
    waiting.delete(data.id);
    who.done(data);
  };
  worker.onerror = event => fail(event.message || 'no worker');
}
function fail(why) {
  for (const who of waiting.values()) who.done({ code: 4, out: '', err: 'oomsight: ' + why });
  waiting.clear();
}
function run(args, files = [], environment = {}) {
  if (!worker) start();
  const id = ++number;
  return new Promise(done => {
    waiting.set(id, { done, progress: showProgress });
    program.then(module => { if (waiting.has(id)) worker.postMessage({ id, module, args, files, environment }); }, error => fail(error.message));
  });
}
function stop() {
  if (worker) worker.terminate();
  worker = null;
  for (const who of waiting.values()) who.done(null);
  waiting.clear();
}

/* ---- models: configs in the shape of a Hugging Face cache, where the command looks for them ---- */
const configs = new Map(); /* name -> text */
const origins = new Map(); /* name -> key of WORDS */
const known = new Set();   /* names that the command has in its own catalogue */
let names = null;          /* when they are there */
let loose = null;          /* a config.json that was dropped, for whatever model is named next */
function cacheFiles() {
  const files = [];
  for (const [name, text] of configs) {
    const folder = 'hf/models--' + name.replaceAll('/', '--');
    files.push([folder + '/refs/main', 'given'], [folder + '/snapshots/given/config.json', text]);
  }
  return files;
}
const ENVIRONMENT = { HF_HUB_CACHE: '/hf', HF_HUB_OFFLINE: '1', NO_COLOR: '1' };
function modelOf(command) {
  for (let i = 0; i < command.length; i++) {
    if (command[i].startsWith('--model=')) return command[i].slice(8);
    if (command[i] === '--model' || command[i] === '--model-path') return command[i + 1] || null;
    if (command[i] === 'serve' && command[i + 1] && !command[i + 1].startsWith('-')) return command[i + 1];
  }
  return null;
}
/* As names on the hub are: a folder of a machine is none, and gets the config that was dropped all the same. */
const isHubName = name => /^[\w][\w.-]*(\/[\w][\w.-]*)?$/.test(name) && !name.includes('--') && !name.includes('..');
function isConfig(text) {
  try { const config = JSON.parse(text); return config && typeof config === 'object' && ('architectures' in config || 'model_type' in config); } catch { return false; }
}
async function fetchConfig(name) {
  let why = '';
  try {
    const answer = await fetch(HUB + name + '/resolve/main/config.json', { credentials: 'omit', referrerPolicy: 'no-referrer' });
    const text = answer.ok ? await answer.text() : '';
    if (answer.ok && text.length < CONFIG_MOST && isConfig(text)) {
      configs.set(name, text); origins.set(name, 'fetched');
      return planNow();
    }
    why = answer.ok ? 'JSON' : String(answer.status);
  } catch (error) { why = error.message; }
  $('model').textContent = words('refused', name, why);
}
function tellModel(name) {
  const note = $('model');
  note.textContent = '';
  if (!name) return;
  if (configs.has(name)) { note.textContent = words(origins.get(name), name); return; }
  if (known.has(name)) { note.textContent = words('known', name); return; }
  note.textContent = words('unknown', name) + ' ';
  if (!isHubName(name)) return;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = words('fetch');
  button.onclick = () => fetchConfig(name);
  note.append(button);
}

/* ---- showing ---- */
let turn = 0;     /* counts questions: the answer to an older one comes too late */
let shown = null; /* how to make the report again in another language */
function showState(text) { $('state').textContent = text; }
function showProgress(read, size) {
  $('progress').max = size; $('progress').value = read;
  showState(words('read', Math.round(read / 1e6), Math.round(size / 1e6)));
}
function begin() {
  if (waiting.size) stop(); /* whoever asked before is answered with nothing */
  $('answerTitle').hidden = false;
  for (const id of ['message', 'report', 'acts', 'choices']) $(id).hidden = true;
  $('progress').removeAttribute('value');
  $('wait').hidden = false;
  showState(words('working'));
  return ++turn;
}
function end(mine, result, share) {
  if (mine !== turn) return;
  $('wait').hidden = true;
  if (!result) return showState(words('stopped'));
  const failed = !result.out;
  $('message').hidden = !result.err;
  $('message').textContent = result.err.trim();
  showState(failed ? '' : words('done', Math.max(1, Math.round(result.ms))));
  if (failed) { if (!result.err) $('message').hidden = false, $('message').textContent = 'exit ' + result.code; return; }
  showReport(result.out);
  $('acts').hidden = false;
  $('link').hidden = !share;
  const top = $('answer').getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) $('answer').scrollIntoView({ block: 'start' }); /* on a phone it lies below both boxes */
}
let saved = null;
function showReport(html) {
  const theme = document.documentElement.dataset.theme;
  const tail = '<script>new ResizeObserver(() => parent.postMessage({ height: document.documentElement.scrollHeight }, "*")).observe(document.body)</scr' + 'ipt>';
  const frame = $('report').cloneNode(); /* a new one: Chromium 156 leaves a frame blank that was hidden and gets another document */
  frame.hidden = false;
  frame.title = words('report');
  frame.style.height = '900px';
  frame.srcdoc = (theme ? html.replace('<html', '<html data-theme="' + theme + '"') : html) + tail;
  $('report').replaceWith(frame);
  if (saved) URL.revokeObjectURL(saved);
  saved = URL.createObjectURL(new Blob([html], { type: 'text/html' }));
  $('save').href = saved;
}
addEventListener('message', event => {
  if (event.source === $('report').contentWindow && event.data && event.data.height > 0) $('report').style.height = Math.min(event.data.height + 4, 40000) + 'px';
});
const LANGUAGE = () => ['--lang', language ? 'zh' : 'en'];

/* ---- plan ---- */
const looksLikeYaml = text => /^\s*(-\s+)?[\w.\/"'-]+:(\s|$)/m.test(text) && !/^\s*(sudo\s+)?(vllm|docker|podman|python3?|exec|nohup)\s/.test(text);
async function commandsIn(text) {
  const name = looksLikeYaml(text) ? 'in/compose.yaml' : /^\s*FROM\s/m.test(text) ? 'in/Dockerfile' : 'in/serve.sh';
  const found = await run(['check', '--json', '--gpu', 'h100', '/' + name], [[name, text.replace(/\r\n?/g, '\n') + '\n'], ...cacheFiles()], ENVIRONMENT);
  if (!found) return null;
  try { return JSON.parse(found.out).commands; } catch { return []; }
}
function gpuFor(found) {
  const named = $('gpu').value.trim();
  if (named) return /x\d+$/i.test(named) || !(found.gpus > 1) ? named : named + 'x' + found.gpus;
  return found.gpu ? found.gpu + (found.gpus > 1 ? 'x' + found.gpus : '') : '';
}
async function planOne(mine, found) {
  const gpu = gpuFor(found), version = $('version').value || found.engine_version;
  if (!gpu) { $('wait').hidden = true; showState(words('needGpu')); $('gpu').focus(); return; }
  const model = modelOf(found.command);
  await names;
  if (loose && model && isHubName(model)) { configs.set(model, loose); origins.set(model, 'given'); loose = null; }
  tellModel(model);
  const args = ['plan', '--offline', '--format', 'html', ...LANGUAGE(), '--gpu', gpu, ...(version ? ['--vllm', version] : []), '--', ...found.command];
  const files = cacheFiles();
  if (loose && model && model.startsWith('/')) files.push([model.replace(/^\/+/, '') + '/config.json', loose]);
  end(mine, await run(args, files, ENVIRONMENT), true);
}
function offer(commands, chosen) {
  const group = $('choices');
  group.textContent = '';
  group.hidden = commands.length < 2;
  if (commands.length < 2) return;
  commands.forEach((found, i) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = (found.name || found.kind) + ': ' + (modelOf(found.command) || i + 1);
    button.setAttribute('aria-pressed', String(i === chosen));
    button.onclick = () => { const mine = begin(); offer(commands, i); planOne(mine, commands[i]); };
    group.append(button);
  });
}
async function planNow() {
  const text = $('command').value.trim();
  if (!text) { showState(words('nothing')); $('command').focus(); return; }
  const mine = begin();
  shown = planNow;
  const commands = await commandsIn(text);
  if (!commands || mine !== turn) return end(mine, null);
  if (!commands.length) { $('wait').hidden = true; showState(words('noCommand')); return; }
  offer(commands, 0);
  await planOne(mine, commands[0]);
  if (mine === turn) await keepInLink(text);
}
/* A link carries the command, without its secrets; a log never gets there. */
async function keepInLink(text) {
  const clean = await run(['redact', '/in/command'], [['in/command', text]], ENVIRONMENT);
  if (!clean || clean.code !== 0) return;
  const parts = new URLSearchParams({ c: clean.out.trim() });
  if ($('gpu').value.trim()) parts.set('gpu', $('gpu').value.trim());
  if ($('version').value) parts.set('vllm', $('version').value);
  if (language) parts.set('lang', 'zh');
  if (new URLSearchParams(location.hash.slice(1)).has('embed')) parts.set('embed', '');
  try { history.replaceState(null, '', '#' + parts); } catch { /* a page from a file may not */ }
}
function fromLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.get('lang')) setLanguage(parts.get('lang'));
  if (!parts.get('c')) return false;
  $('command').value = parts.get('c');
  $('gpu').value = parts.get('gpu') || '';
  const version = parts.get('vllm') || '';
  if (/^[\d.]+$/.test(version) && ![...$('version').options].some(o => o.value === version)) $('version').append(new Option(version, version));
  $('version').value = /^[\d.]+$/.test(version) ? version : '';
  return true;
}

/* ---- explain and replay ---- */
async function isTrace(file) {
  const head = new Uint8Array(await file.slice(0, SNIFF).arrayBuffer());
  if (head[0] === 0x80) return true; /* a pickle */
  const text = new TextDecoder('latin1').decode(head);
  if (/\.(pickle|pkl)(\.gz)?$/i.test(file.name || '')) return true;
  return /^oomsight/i.test(text) || (text[0] === '{' && /"(segments|device_traces|op)"\s*:/.test(text));
}
async function explainNow(files) {
  const mine = begin();
  shown = () => explainNow(files);
  const inside = new URLSearchParams(location.hash.slice(1)).has('embed') ? '#embed=' : '';
  history.replaceState(null, '', location.pathname + location.search + inside);
  const named = files.map((file, i) => ['in/' + (i ? i + '-' : '') + (file.name || 'log').replace(/[^\w.-]/g, '_').slice(-80), file]);
  const trace = await isTrace(files[0]);
  const how = trace ? ['replay', ...named.slice(0, 1).map(([path]) => '/' + path)] : ['explain', ...named.map(([path]) => '/' + path)];
  const args = [how[0], '--format', 'html', ...LANGUAGE(), ...how.slice(1)];
  if (mine === turn) end(mine, await run(args, [...named, ...cacheFiles()], ENVIRONMENT), false);
}

/* ---- what people do ---- */
async function take(list) {
  const files = [...list];
  if (!files.length) return;
  if (files.length === 1 && /\.json$/i.test(files[0].name) && files[0].size < CONFIG_MOST) {
    const text = await files[0].text();
    if (isConfig(text)) {
      loose = text;
      if ($('command').value.trim()) return planNow();
      $('model').textContent = words('given', files[0].name);
      return $('command').focus();
    }
  }
  return explainNow(files);
}
$('plan').addEventListener('submit', event => { event.preventDefault(); planNow(); });
$('explain').addEventListener('submit', event => {
  event.preventDefault();
  if ($('log').value.trim()) return explainNow([new File([$('log').value], 'log')]);
  showState(words('nothing')); $('log').focus();
});
for (const id of ['command', 'log']) $(id).addEventListener('keydown', event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit(); });
$('file').addEventListener('change', event => take(event.target.files));
$('config').addEventListener('change', async event => {
  const file = event.target.files[0];
  if (!file) return;
  const text = file.size < CONFIG_MOST ? await file.text() : '';
  if (isConfig(text)) { loose = text; if ($('command').value.trim()) planNow(); } else $('model').textContent = words('notConfig', file.name);
});
addEventListener('dragover', event => { event.preventDefault(); document.body.classList.add('over'); });
addEventListener('dragleave', event => { if (!event.relatedTarget) document.body.classList.remove('over'); });
addEventListener('drop', event => { event.preventDefault(); document.body.classList.remove('over'); take(event.dataTransfer.files); });
$('stop').addEventListener('click', () => { stop(); end(turn, null); });
$('language').addEventListener('click', () => { setLanguage(language ? 'en' : 'zh'); if (shown && !$('report').hidden) shown(); });
$('theme').addEventListener('click', () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  if (shown && !$('report').hidden) shown();
});
$('link').addEventListener('click', async () => {
  try { await navigator.clipboard.writeText(location.href); showState(words('copied')); } catch { showState(location.href); }
});
addEventListener('hashchange', () => { if (fromLink()) planNow(); });

async function lists() {
  const [gpus, engines] = await Promise.all([run(['gpus', '--json']), run(['engines', '--json'])]);
  if (!gpus || !engines) return;
  for (const gpu of JSON.parse(gpus.out).gpus) {
    if (gpu.slice) continue;
    const option = document.createElement('option');
    option.value = gpu.aliases[0] || gpu.name;
    option.label = gpu.name + ' (' + (gpu.total_bytes / 2 ** 30).toFixed(0) + ' GiB)';
    $('gpus').append(option);
  }
  const chosen = $('version').value;
  $('version').replaceChildren($('version').options[0], ...JSON.parse(engines.out).versions.reverse().map(version => new Option(version, version)));
  $('version').value = chosen;
}
async function catalogue() {
  try {
    for (const name of await (await fetch('models.json')).json()) known.add(name);
  } catch { /* they are planned all the same, and said not to be known */ }
}
/* Inside another page only the boxes and the answer are shown, and that page is told how high they are. */
function embed() {
  if (!new URLSearchParams(location.search).has('embed') && !new URLSearchParams(location.hash.slice(1)).has('embed')) return;
  document.documentElement.dataset.embed = '1';
  if (parent !== self) new ResizeObserver(() => parent.postMessage({ oomsight: { height: document.documentElement.scrollHeight } }, '*')).observe(document.body);
}
const ready = (async () => {
  embed();
  setLanguage((navigator.language || '').startsWith('zh') ? 'zh' : 'en');
  start();
  names = catalogue();
  if (fromLink()) await planNow();
  await lists();
  await names;
  document.documentElement.dataset.ready = '1';
  /* last, because it loads everything once more */
  if ('serviceWorker' in navigator && (location.protocol === 'https:' || location.hostname === '127.0.0.1' || location.hostname === 'localhost'))
    navigator.serviceWorker.register('sw.js').catch(() => {});
})();
