/* The two boxes: what was pasted or dropped becomes a run of the command in the worker, what it prints becomes the report. Text of
 * strangers is only ever put in as text; the report lives in a frame that has no rights here. */
'use strict';
const $ = id => document.getElementById(id);
const HUB = 'https://huggingface.co/';
const CONFIG_MOST = 4 << 20;

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

/* ---- models: configs where the command looks for them, each bound to the name that it was given for ---- */
const configs = new Map(); /* name -> text */
const origins = new Map(); /* name -> key of WORDS */
const known = new Set();   /* names that the command has in its own catalogue */
let names = null;          /* when they are there */
let loose = null;          /* a config.json for the model that is named next */
const isHubName = name => /^[\w][\w.-]*(\/[\w][\w.-]*)?$/.test(name) && !name.includes('--') && !name.includes('..');
function cacheFiles() {
  const files = [];
  for (const [name, text] of configs) {
    const folder = 'hf/models--' + name.replaceAll('/', '--');
    if (isHubName(name)) files.push([folder + '/refs/main', 'given'], [folder + '/snapshots/given/config.json', text]);
    else files.push([name.replace(/^[./]+/, '').replace(/\/+$/, '') + '/config.json', text]); /* a folder of a machine */
  }
  return files;
}
const ENVIRONMENT = { HF_HUB_CACHE: '/hf', HF_HUB_OFFLINE: '1', NO_COLOR: '1' };
function bind(name, text, origin) {
  configs.set(name, text); origins.set(name, origin);
  tellConfigs();
}
function unbind(name) {
  if (name === null) loose = null; else configs.delete(name), origins.delete(name);
  tellConfigs();
  if (name !== null && $('command').value.trim()) return planNow();
}
/* What was given, and how to take it back. */
function tellConfigs() {
  const chip = (name, text) => {
    const part = document.createElement('span'), remove = document.createElement('button');
    part.className = 'chip';
    remove.type = 'button'; remove.textContent = '\u00d7';
    remove.setAttribute('aria-label', words('remove', text));
    remove.onclick = () => unbind(name);
    part.append(text + ' ', remove);
    return part;
  };
  $('configs').replaceChildren(...[...configs.keys()].map(name => chip(name, words(origins.get(name), name))), ...(loose === null ? [] : [chip(null, words('loose'))]));
  $('configs').hidden = !$('configs').childNodes.length;
}
async function fetchConfig(name) {
  let why = '';
  try {
    const answer = await fetch(HUB + name + '/resolve/main/config.json', { credentials: 'omit', referrerPolicy: 'no-referrer' });
    const text = answer.ok ? await answer.text() : '';
    const seen = answer.ok && text.length < CONFIG_MOST ? await whatIs(text) : null;
    if (seen && seen.kind === 'config') {
      bind(name, text, 'fetched');
      return planNow();
    }
    why = answer.ok ? 'JSON' : String(answer.status);
  } catch (error) { why = error.message; }
  $('model').textContent = words('refused', name, why);
}
function button(text, act) {
  const made = document.createElement('button');
  made.type = 'button';
  made.textContent = text;
  made.onclick = act;
  return made;
}
/* The config that waits for a name gets this one; a model of the catalogue is planned by its own until somebody says otherwise. */
function nameModel(name) {
  if (loose === null || !name) return;
  if (!known.has(name)) { const text = loose; loose = null; return bind(name, text, 'given'); }
}
function tellModel(name) {
  const note = $('model');
  note.textContent = '';
  if (!name || configs.has(name)) return;
  if (known.has(name)) {
    note.textContent = words(loose === null ? 'known' : 'askConfig', name) + ' ';
    if (loose !== null) note.append(button(words('takeMine'), () => { const text = loose; loose = null; bind(name, text, 'given'); planNow(); }), ' ', button(words('takeKnown'), () => { unbind(null); tellModel(name); }));
    return;
  }
  note.textContent = words('unknown', name) + ' ';
  if (isHubName(name)) note.append(words('or') + ' ', button(words('fetch'), () => fetchConfig(name)));
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
  for (const id of ['message', 'report', 'acts', 'choices', 'said']) $(id).hidden = true;
  $('model').textContent = '';
  setLink(null);
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
/* A line above the answer: what the text was taken for, whose GPU it is. */
function say(text) {
  $('said').textContent = ($('said').hidden ? '' : $('said').textContent + ' ') + text;
  $('said').hidden = false;
}
/* No answer, and why not. */
function giveUp(mine, text) {
  if (mine !== turn) return;
  $('wait').hidden = true;
  showState(text);
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

/* ---- what is it? ---- */
/* Told by the command; null: stopped. */
async function whatIs(input) {
  const seen = await run(['what', '--json', '-'], [['-', input]], ENVIRONMENT);
  if (!seen) return null;
  try { return JSON.parse(seen.out); } catch { return { kind: 'log', engine: null }; } /* unreadable: its own command says why */
}
/* A text of one of the boxes, or a file: answered by what it is, wherever it was put. */
async function answer(input, box, chosen = 0) {
  const mine = begin();
  shown = () => answer(input, box, chosen);
  const seen = await whatIs(input);
  if (!seen || mine !== turn) return end(mine, null);
  const text = typeof input === 'string' ? input : seen.kind === 'command' || seen.kind === 'config' ? await input.text() : null;
  if (mine !== turn) return;
  switch (seen.kind) {
    case 'empty': return giveUp(mine, words(typeof input === 'string' ? 'nothing' : 'emptyFile'));
    case 'config': return takeConfig(text);
    case 'other': return giveUp(mine, words('other', seen.engine));
    case 'trace': return replay(mine, input);
    case 'command':
      if (box !== 'command') { $('command').value = text; if (box === 'log') $('log').value = ''; say(words('isCommand')); }
      return plan(mine, text, seen.engine, chosen);
    case 'log':
      if (box === 'command') { $('log').value = text; $('command').value = ''; say(words('isLog')); }
      return explain(mine, [input], box === 'command' ? text : null);
    default: return box === 'command' ? plan(mine, text, null, chosen) : explain(mine, [input]);
  }
}

/* ---- plan ---- */
async function check(text, gpu) {
  const found = await run(['check', '--json', '--offline', ...(gpu ? ['--gpu', gpu] : []), '-'], [['-', text], ...cacheFiles()], ENVIRONMENT);
  if (!found) return null;
  try { return JSON.parse(found.out); } catch { return { commands: [], not_looked_at: [{ problem: found.err.trim() }] }; }
}
/* {gpu, engine, ...} of the words before `--`. */
function optionsOf(words) {
  const options = {};
  for (let i = 0; words[i] && words[i] !== '--'; i += 2) options[words[i].slice(2)] = words[i + 1];
  return options;
}
const commandOf = words => words.slice(words.indexOf('--') + 1);
/* The commands of the text, each with the options of its plan. The box's GPU goes before the file's own, which is then told. */
async function commandsIn(text, gpu) {
  const found = await check(text, gpu);
  if (!found) return null;
  for (const c of found.commands) c.options = optionsOf(c.plan || []);
  const other = c => c.options.gpu && c.options.gpu !== gpu && c.options.gpu !== gpu + 'x' + c.gpus;
  if (!gpu) { for (const c of found.commands) c.own = c.options.gpu || null; return found; }
  if (!found.commands.some(other)) return found;
  const alone = await check(text, ''); /* by the file, or a slice of the box's? */
  if (!alone) return null;
  alone.commands.forEach((c, i) => {
    const own = optionsOf(c.plan || []).gpu, to = found.commands[i];
    if (!own || !to) return;
    to.own = own;
    to.options.gpu = /x\d+$/i.test(gpu) || !(to.gpus > 1) ? gpu : gpu + 'x' + to.gpus;
  });
  return found;
}
let extra = null; /* what a link says of its command besides GPU and release */
function planWords(found) {
  const options = { ...found.options, ...(extra || {}) };
  if ($('version').value) options.engine = $('version').value;
  return [...Object.entries(options).flatMap(([name, value]) => ['--' + name, value]), '--', ...commandOf(found.plan)];
}
async function planOne(mine, commands, chosen) {
  const found = commands[chosen], gpu = $('gpu').value.trim();
  if (!found.plan) return giveUp(mine, found.problem);
  setEngine(found.engine);
  await names;
  nameModel(found.model);
  tellModel(found.model);
  if (!found.options.gpu && !(extra && extra['gpu-total'])) { giveUp(mine, words('needGpu')); $('gpu').focus(); return; }
  if (found.own) say(gpu ? words('otherGpu', found.own, gpu) : words('fileGpu', found.own));
  const asked = planWords(found);
  const result = await run(['plan', '--offline', '--format', 'html', ...LANGUAGE(), ...asked], cacheFiles(), ENVIRONMENT);
  end(mine, result, true);
  if (result && result.out && mine === turn) await keepInLink(commands, chosen, optionsOf(asked));
}
function offer(commands, chosen) {
  const group = $('choices');
  group.textContent = '';
  group.hidden = commands.length < 2;
  if (commands.length < 2) return;
  commands.forEach((found, i) => {
    const one = button((found.name || found.kind) + ': ' + (found.model || i + 1), () => {
      const mine = begin();
      extra = null;
      shown = () => answer($('command').value, 'command', i);
      offer(commands, i);
      planOne(mine, commands, i);
    });
    one.setAttribute('aria-pressed', String(i === chosen));
    group.append(one);
  });
}
async function plan(mine, text, engine, chosen) {
  const found = await commandsIn(text, $('gpu').value.trim());
  if (!found || mine !== turn) return end(mine, null);
  const commands = found.commands;
  if (!commands.length) return giveUp(mine, [words('noCommand'), ...found.not_looked_at.map(gap => gap.problem)].join(' '));
  const one = Math.min(chosen, commands.length - 1);
  offer(commands, one);
  await planOne(mine, commands, one);
}
const planNow = (chosen = 0) => answer($('command').value, 'command', chosen);

/* ---- links: the commands that were recognised, never the text they stood in ---- */
const LINK_MOST = 6000;
function quoted(word) { return /^[\w@%+=:,.\/-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'"; }
const lineOf = found => { const list = commandOf(found.plan); return list.length === 1 ? list[0] : list.map(quoted).join(' '); };
const LINK_OPTIONS = ['gpu', 'engine', 'gpu-total', 'gpu-used', 'gpu-cc', 'host-ram'];
/* The address of a question; null: there is none. */
function setLink(parts) {
  const kept = new URLSearchParams(parts || {});
  if (language) kept.set('lang', 'zh');
  if (new URLSearchParams(location.hash.slice(1)).has('embed')) kept.set('embed', '');
  try { history.replaceState(null, '', location.pathname + location.search + (String(kept) ? '#' + kept : '')); } catch { /* a page from a file may not */ }
}
async function keepInLink(commands, chosen, options) {
  const lines = commands.filter(found => found.plan).map(lineOf), all = lines.join('\n').length < LINK_MOST;
  const mine = turn, text = all ? lines.join('\n') : lineOf(commands[chosen]);
  const clean = await run(['redact', '-'], [['-', text]], ENVIRONMENT);
  if (!clean || clean.code !== 0 || mine !== turn) return;
  const parts = { c: clean.out.trim() }, index = commands.filter(found => found.plan).indexOf(commands[chosen]);
  for (const name of LINK_OPTIONS) if (options[name]) parts[name] = options[name];
  if (all && index) parts.n = index;
  setLink(parts);
}
function fromLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.get('lang')) setLanguage(parts.get('lang'));
  if (!parts.get('c')) return false;
  $('command').value = parts.get('c');
  $('gpu').value = parts.get('gpu') || '';
  const release = parts.get('engine') || (parts.get('vllm') ? 'vllm=' + parts.get('vllm') : '');
  const valid = /^[a-z]+=[\w.]+$/.test(release);
  if (valid && ![...$('version').options].some(o => o.value === release)) $('version').append(new Option(release, release));
  $('version').value = valid ? release : '';
  extra = {};
  for (const name of LINK_OPTIONS.slice(2)) if (parts.get(name)) extra[name] = parts.get(name);
  return true;
}
const linkChoice = () => Number(new URLSearchParams(location.hash.slice(1)).get('n')) || 0;

/* ---- explain and replay ---- */
/* A file by its own name, as in the folder of whoever asks the command; what was pasted is standard input. */
const named = (file, i) => (i ? i + '-' : '') + (file.name || 'log').replace(/[^\w.-]/g, '_').replace(/^[-.]/, '_').slice(-80);
const inputs = list => list.map((file, i) => [typeof file === 'string' ? '-' : named(file, i), file]);
/* `text`: commands in it are offered, too. */
async function explain(mine, list, text) {
  const files = inputs(list);
  const result = await run(['explain', '--format', 'html', ...LANGUAGE(), ...files.map(([path]) => path)], [...files, ...cacheFiles()], ENVIRONMENT);
  end(mine, result, false);
  if (!text || !result || mine !== turn) return;
  const found = await check(text, '');
  if (!found || mine !== turn) return;
  for (const c of found.commands.filter(c => c.plan).slice(0, 3)) {
    const line = lineOf(c);
    say(words('inLog'));
    $('said').append(' ', button(words('planGo') + ': ' + line.slice(0, 80), () => { $('command').value = line; planNow(); }));
  }
}
async function replay(mine, input) {
  const files = inputs([input]);
  end(mine, await run(['replay', '--format', 'html', ...LANGUAGE(), files[0][0]], files, ENVIRONMENT), false);
}

/* ---- what people do ---- */
/* A config is for the model that is named now; without one, for the next. */
async function takeConfig(text) {
  const mine = begin();
  loose = text;
  const command = $('command').value;
  const found = command.trim() ? await check(command, '') : null;
  if (mine !== turn) return;
  tellConfigs();
  if (found && found.commands.some(c => c.model)) {
    const chosen = [...$('choices').children].findIndex(one => one.getAttribute('aria-pressed') === 'true');
    return planNow(Math.max(chosen, 0));
  }
  giveUp(mine, words('keptConfig'));
  $('command').focus();
}
async function take(list) {
  const files = [...list];
  if (files.length < 2) return files.length ? answer(files[0], 'file') : undefined;
  const mine = begin();
  shown = () => take(files);
  return explain(mine, files);
}
$('plan').addEventListener('submit', event => { event.preventDefault(); planNow(); });
$('explain').addEventListener('submit', event => { event.preventDefault(); answer($('log').value, 'log'); });
$('command').addEventListener('input', () => { extra = null; });
for (const id of ['command', 'log']) $(id).addEventListener('keydown', event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit(); });
$('file').addEventListener('change', event => { const files = [...event.target.files]; event.target.value = ''; take(files); });
$('config').addEventListener('change', async event => {
  const file = event.target.files[0];
  event.target.value = ''; /* the same file may be chosen again after it was removed */
  if (!file) return;
  const text = file.size < CONFIG_MOST ? await file.text() : '', seen = await whatIs(text);
  if (seen && seen.kind === 'config') return takeConfig(text);
  $('model').textContent = words('notConfig', file.name);
});
addEventListener('dragover', event => { event.preventDefault(); document.body.classList.add('over'); });
addEventListener('dragleave', event => { if (!event.relatedTarget) document.body.classList.remove('over'); });
addEventListener('drop', event => { event.preventDefault(); document.body.classList.remove('over'); take(event.dataTransfer.files); });
$('stop').addEventListener('click', () => { stop(); end(turn, null); });
$('language').addEventListener('click', () => { setLanguage(language ? 'en' : 'zh'); showReleases(); tellConfigs(); if (shown && !$('report').hidden) shown(); });
$('theme').addEventListener('click', () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  if (shown && !$('report').hidden) shown();
});
$('link').addEventListener('click', async () => {
  try { await navigator.clipboard.writeText(location.href); showState(words('copied')); } catch { showState(location.href); }
});
addEventListener('hashchange', () => { const n = linkChoice(); if (fromLink()) planNow(n); });

async function lists() {
  const [gpus, listed] = await Promise.all([run(['gpus', '--json']), run(['engines', '--json'])]);
  if (!gpus || !listed) return;
  for (const gpu of JSON.parse(gpus.out).gpus) {
    if (gpu.slice) continue;
    const option = document.createElement('option');
    option.value = gpu.aliases[0] || gpu.name;
    option.label = gpu.name + ' (' + (gpu.total_bytes / 2 ** 30).toFixed(0) + ' GiB)';
    $('gpus').append(option);
  }
  engines = JSON.parse(listed.out).engines;
  showReleases();
}
/* ---- releases: those of the command's engine, and of the others for a translation ---- */
let engines = [];   /* of `oomsight engines` */
let engine = null;  /* of the last command */
const titleOf = name => (engines.find(one => one.engine === name) || { title: name }).title;
function showReleases() {
  const box = $('version'), chosen = box.value;
  $('versionName').textContent = engine ? words('versionOf', titleOf(engine)) : words('versionLabel');
  if (!engines.length) return;
  const own = engine || engines[0].engine;
  const groups = [...engines].sort((a, b) => (b.engine === own) - (a.engine === own)).map(one => {
    const group = document.createElement('optgroup');
    group.label = one.engine === own || !engine ? one.title : words('translated', one.title);
    group.append(...[...one.versions].reverse().map(version => new Option(one.title + ' ' + version, one.engine + '=' + version)));
    return group;
  });
  box.replaceChildren(box.options[0], ...groups);
  if (chosen && ![...box.options].some(option => option.value === chosen)) box.append(new Option(chosen, chosen));
  box.value = chosen;
}
/* A release that was chosen for another engine's command is not this one's. */
function setEngine(name) {
  if (name === engine) return;
  if (engine !== null && $('version').value && !$('version').value.startsWith(name + '=')) $('version').value = '';
  engine = name;
  showReleases();
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
  const n = linkChoice();
  if (fromLink()) await planNow(n);
  await lists();
  await names;
  document.documentElement.dataset.ready = '1';
  /* last, because it loads everything once more */
  if ('serviceWorker' in navigator && (location.protocol === 'https:' || location.hostname === '127.0.0.1' || location.hostname === 'localhost'))
    navigator.serviceWorker.register('sw.js').catch(() => {});
})();
