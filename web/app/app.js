/* One box: what was pasted or dropped becomes a run of the command in the worker, what it prints becomes the report. Text of
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
  if (name !== null && $('input').value.trim()) return planNow(pressed());
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
      return planNow(pressed());
    }
    why = answer.ok ? 'JSON' : String(answer.status);
  } catch { /* no answer at all */ }
  $('model').textContent = why ? words('refused', name, why) : words('noNetwork');
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
  if (!known.has(name)) { const text = loose; loose = null; bind(name, text, 'given'); return true; }
}
function tellModel(name) {
  const note = $('model');
  note.textContent = '';
  if (!name || configs.has(name)) return;
  if (known.has(name)) {
    note.textContent = words(loose === null ? 'known' : 'askConfig', name) + ' ';
    if (loose !== null) note.append(button(words('takeMine'), () => { const text = loose; loose = null; bind(name, text, 'given'); planNow(pressed()); }), ' ', button(words('takeKnown'), () => { unbind(null); tellModel(name); }));
    return;
  }
  note.textContent = words('unknown', name) + ' ';
  meant(note, nearest(name, [...known]), name);
  if (isHubName(name)) note.append(words('or') + ' ', button(words('fetch'), () => fetchConfig(name)));
}
/* Letters to change from one to the other; more than `most` are not counted. */
function distance(a, b, most) {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length];
}
const plain = name => name.toLowerCase().replace(/[^a-z0-9]|nvidia|geforce|rtx|tesla/g, '');
/* Up to three names that are nearly this one. */
function nearest(name, list) {
  const asked = plain(name).slice(0, 80), most = asked.length < 4 ? 1 : Math.min(3, Math.max(2, asked.length >> 2));
  return list.map(one => [distance(asked, plain(one), most), one]).filter(([far]) => far <= most).sort((a, b) => a[0] - b[0]).slice(0, 3).map(([, one]) => one);
}
/* They are offered; one that is pressed takes the place of the wrong one. */
function meant(note, list, name, box = $('input')) {
  if (list.length) note.append(words('nearest') + ' ', ...list.flatMap(one => [button(one, () => { box.value = box.value.replace(name, one); planNow(pressed()); }), ' ']));
}

/* ---- showing ---- */
const boxes = () => [held, $('input').value, $('gpu').value, $('version').value];
let answered = []; /* what stood in them when the answer that is shown was asked for */
function tellStale() {
  $('stale').hidden = $('answer').hidden || boxes().every((value, i) => value === answered[i]);
  if (!$('stale').hidden) showState('');
}
let turn = 0;     /* counts questions: the answer to an older one comes too late */
let shown = null; /* how to make the report again in another language */
function showState(text) { $('state').textContent = text; }
function showProgress(read, size) {
  $('progress').max = size; $('progress').value = read;
  showState(words('read', Math.round(read / 1e6), Math.round(size / 1e6)));
}
/* `kept`: another command of the same text, whose list stays. */
function begin(kept) {
  if (waiting.size) stop(); /* whoever asked before is answered with nothing */
  for (const id of ['message', 'report', 'acts', 'said', 'took', 'best', 'one']) $(id).hidden = true;
  if (!kept) { overall = null; $('choices').hidden = $('answer').hidden = true; }
  for (const id of ['model', 'facts', ...(kept ? [] : ['verdict'])]) $(id).textContent = '';
  if (!kept) delete document.body.dataset.answered;
  told = undefined; /* the frame before may still speak */
  answered = boxes();
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
  if (!share || failed) setLink(null);
  if (failed) return overall ? without(problemOf(result.err)) : showFailure(result);
  $('message').hidden = !result.err;
  $('message').textContent = result.err.trim();
  showState(words('done', Math.max(1, Math.round(result.ms))));
  document.body.dataset.answered = '1';
  for (const id of ['answer', 'acts']) $(id).hidden = false;
  $('link').hidden = !share;
  $('link').open = false;
  tellStale();
  showReport(result.out);
}
/* What a command says of its options and folders is said in the words of this page. */
const NO_CONFIG = /not in the Hugging Face cache|no such directory|not the name of a model/;
const problemOf = err => NO_CONFIG.test(err) ? words('noConfig') : err.trim().replace(/^oomsight( \w+)?: /, '');
function showFailure(result) {
  const err = result.err.trim(), gpu = /no GPU is called '(.*?)'/.exec(err);
  showState('');
  if (NO_CONFIG.test(err) && $('model').textContent) return;
  $('message').hidden = false;
  $('message').textContent = gpu ? words('noGpu', gpu[1]) + ' ' : err.replace(/^oomsight( \w+)?: /, '') || 'exit ' + result.code;
  if (gpu) { meant($('message'), nearest(gpu[1], [...$('gpus').options].map(option => option.value)), gpu[1], $('gpu')); $('gpu').focus(); }
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
  setLink(null);
  if (overall) without(text); else showState(text);
}
/* Of several commands, the chosen one has no answer: the others stay in reach. */
function without(why) {
  showState('');
  $('answer').hidden = false;
  document.body.dataset.answered = '1';
  showVerdict(words('unplanned'), why, null);
  tellStale();
}
let saved = null, told = null, asked = false; /* the verdict that is shown, null: it is waited for; whether somebody pressed the button */
function showReport(html) {
  const theme = document.documentElement.dataset.theme;
  const frame = $('report').cloneNode(); /* a new one: Chromium 156 leaves a frame blank that was hidden and gets another document */
  frame.hidden = false;
  frame.title = words('report');
  frame.style.height = '320px';
  /* the report's policy, and a nonce for what is put behind it here */
  const nonce = [...crypto.getRandomValues(new Uint8Array(12))].map(byte => byte.toString(16).padStart(2, '0')).join('');
  const inside = html.replace(/(<meta http-equiv="Content-Security-Policy" content=")([^"]*)/, (_, tag, policy) =>
    tag + (policy.includes('script-src') ? policy : policy + '; script-src').replace(/(?:style|script)-src/g, "$& 'nonce-" + nonce + "'"));
  frame.srcdoc = (theme ? inside.replace('<html', '<html data-theme="' + theme + '"') : inside) + TAIL.replaceAll('@NONCE@', nonce);
  $('report').replaceWith(frame);
  told = null;
  if (saved) URL.revokeObjectURL(saved);
  saved = URL.createObjectURL(new Blob([html], { type: 'text/html' }));
  $('save').href = saved;
  const data = /<script[^>]*type="application\/json"[^>]*>([^]*?)<\/script>/.exec(html);
  try { showBest(JSON.parse(data[1]).documents[0]); } catch { /* a replay has none */ }
}
/* Behind the report in its frame: it tells how high it is, and what its first lines say; at once, and for two seconds by a clock, as a
 * frame that is out of sight is not drawn: no observer tells that it got its width. One button for the colours is enough. */
const TAIL = '<style nonce="@NONCE@">#theme, h1, h1 + p:not(.dim), .first, body > header, .told { display: none } body { padding: 8px 12px } footer { display: none }</style>' +
  '<script nonce="@NONCE@">{ let last = 0, left = 40; const tell = () => { const high = Math.ceil(document.body.getBoundingClientRect().bottom + 8); if (high === last) return; last = high;' +
  ' const h = document.querySelector("h1"), p = [...document.querySelectorAll("main p, article p")].find(x => !x.closest(".dim") && x.textContent.trim());' +
  ' parent.postMessage({ height: high, title: h ? [...h.childNodes].filter(n => n.className !== "phase").map(n => n.textContent.trim().replace(/^[:,] */, "")).filter(Boolean).join(": ").replace(/: (?=[(]|in |perhaps )/g, " ") : "",' +
  ' why: p ? p.textContent.trim() : "", kind: h && h.querySelector(".verdict") ? h.querySelector(".verdict").className : "" }, "*") }; tell(); new ResizeObserver(tell).observe(document.body);' +
  ' const again = setInterval(() => { tell(); --left || clearInterval(again) }, 50) }</scr' + 'ipt>';
addEventListener('message', event => {
  const data = event.data;
  if (event.source !== $('report').contentWindow || !data || !(data.height > 0)) return;
  $('report').style.height = Math.min(data.height, 40000) + 'px';
  if (told !== null || typeof data.title !== 'string' || typeof data.why !== 'string') return;
  showVerdict(data.title, data.why, /\b(good|bad|warn)\b/.exec(data.kind));
});
/* The answer in one sentence, for everybody who does not look into the frame; it is read out, and Tab goes on from it. */
function showVerdict(title, why, kind) {
  title = title.replace(/^[A-Z][A-Z', ]{3,}(?=:|$)/, head => head[0] + head.slice(1).toLowerCase()); /* a sentence, not a sign */
  told = (title + (why ? (title.includes(':') ? '. ' : ': ') + why : '')).slice(0, 600);
  $('one').hidden = !overall;
  if (overall) $('one').textContent = overall.label + ': ' + told;
  $('verdict').textContent = overall ? overall.title : told;
  $('verdict').className = overall ? overall.kind : kind ? kind[0] : '';
  document.title = (overall ? overall.title : title).slice(0, 80) + ' - oomsight';
  $('save').download = 'oomsight-' + (title.replace(/[^\w]+/g, '-').replace(/^-|-$/g, '').slice(0, 60).toLowerCase() || 'report') + '.html';
  if (asked) $('verdict').focus({ preventScroll: true });
  asked = false;
  const { top, bottom } = $('verdict').getBoundingClientRect();
  if (top < 0 || bottom > innerHeight || innerWidth <= 600) $('verdict').scrollIntoView({ block: 'start' });
}
/* GPU, engine and model with where each comes from; the first suggestion as a command to copy or to plan. */
function showBest(doc) {
  const assumed = (doc.assumed || []).join('; '), mark = (what, sure) => what + ' (' + words(sure) + ')', facts = [];
  if (doc.gpu && doc.gpu.name) facts.push(mark(doc.gpu.name, doc.schema !== 'oomsight.plan/1' ? 'fromText' : $('gpu').value.trim() && assumed.includes($('gpu').value.trim()) ? 'fromUs' : $('gpu').value.trim() ? 'fromYou' : 'fromText'));
  if (doc.engine && doc.engine.name && doc.engine.version)
    facts.push(mark(titleOf(doc.engine.name) + ' ' + doc.engine.version, doc.schema !== 'oomsight.plan/1' ? 'fromText' : (doc.assumed || []).some(one => one.includes(' ' + doc.engine.version) && !one.includes('from the command')) ? 'fromUs' : $('version').value ? 'fromYou' : 'fromText'));
  $('facts').replaceChildren(...facts.map(text => { const chip = document.createElement('span'); chip.className = 'chip fact'; chip.textContent = text; return chip; }));
  const first = (doc.answers || [])[0] || (doc.needs && doc.needs.checkpoints || [])[0] || (doc.fixes || [])[0], works = doc.verdict === 'fits';
  $('best').hidden = !first || works;
  if (!first || works) return;
  const line = first.command || (first.change || []).map(quoted).join(' ');
  $('bestCommand').textContent = line;
  $('bestPlan').hidden = !first.command;
  $('bestCost').textContent = first.gives_up ? words('givesUp', first.gives_up.replace(/(?<=^|[ (])\d{4,}(?=$|:| (?:tokens|blocks|sequences))/g, n => Number(n).toLocaleString('en'))) : '';
}
const LANGUAGE = () => ['--lang', language ? 'zh' : 'en'];

/* ---- what is it? ---- */
/* Told by the command; null: stopped. */
async function whatIs(input) {
  const seen = await run(['what', '--json', '-'], [['-', input]], ENVIRONMENT);
  if (!seen) return null;
  try { return JSON.parse(seen.out); } catch { return { kind: 'log', engine: null }; } /* unreadable: its own command says why */
}
/* A text of the box, or a file: answered by what it is, or by what somebody says it is. */
async function answer(input, chosen = null, as = null, kept = false) {
  const mine = begin(kept);
  shown = () => answer(input, chosen, as);
  const seen = await whatIs(input);
  if (!seen || mine !== turn) return end(mine, null);
  const kind = as || seen.kind, isText = typeof input === 'string';
  const text = isText ? input : kind === 'command' || kind === 'config' ? await input.text() : null;
  if (mine !== turn) return;
  switch (kind) {
    case 'empty': return giveUp(mine, words(isText ? 'nothing' : 'emptyFile'));
    case 'config': return takeConfig(text, isText);
    case 'other': return giveUp(mine, words('other', seen.engine));
    case 'trace': tookFor('aTrace'); return replay(mine, input);
    case 'command':
      if (!isText && text.length < LARGE) $('input').value = answered[1] = text;
      tookFor('aCommand', 'asLog', () => answer(input, null, 'log'));
      return plan(mine, text, chosen, i => { extra = null; return answer(input, i, as, true); });
    case 'log':
      tookFor('aLog', ...(as ? [] : ['asCommand', () => answer(input, null, 'command')]));
      return explain(mine, [input], isText ? text : null);
    default: return isText ? plan(mine, text, chosen, i => answer(input, i, as, true), 'nothingSeen') : explain(mine, [input]);
  }
}
/* What it was taken for, and a button for who knows better. */
function tookFor(what, other, act) {
  $('took').replaceChildren(words('took', words(what)) + ' ', ...(other ? [button(words(other), act)] : []));
  $('took').hidden = false;
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
function planWords(found, chosen) {
  const options = { ...found.options, ...(chosen && extra || {}) };
  if ($('version').value) options.engine = $('version').value;
  return [...Object.entries(options).flatMap(([name, value]) => ['--' + name, value]), '--', ...commandOf(found.plan)];
}
const hasGpu = (found, chosen) => !!(found.plan && (found.options.gpu || chosen && extra && extra['gpu-total']));
async function planOne(mine, commands, chosen) {
  const found = commands[chosen], gpu = $('gpu').value.trim();
  if (!found.plan) return giveUp(mine, found.problem);
  tellModel(found.model);
  if (!hasGpu(found, true)) { giveUp(mine, words('needGpu')); $('gpu').focus(); return; }
  if (found.own) say(gpu ? words('otherGpu', found.own, gpu) : words('fileGpu', found.own));
  if (found.host_needs_bytes) say(words('hostLimit'));
  const asked = planWords(found, true);
  const result = await run(['plan', '--offline', '--format', 'html', ...LANGUAGE(), ...asked], cacheFiles(), ENVIRONMENT);
  end(mine, result, true);
  if (result && result.out && mine === turn) await keepInLink(commands, chosen, optionsOf(asked));
}
/* ---- several commands: all of them above the one that is shown ---- */
let overall = null; /* the sentence about all, its colour, and the name of the one that is shown; null: there is one command */
const STANDS = ['willNot', 'probablyNot', 'unplanned', 'probably', 'will']; /* the worst first */
const COLOURS = { willNot: 'bad', probablyNot: 'bad', unplanned: 'warn', probably: 'warn', will: 'good' };
function standsOf(found) {
  if (found.host_needs_bytes || /^(fails|refused)$/.test(found.verdict)) return 'willNot';
  if (found.verdict === 'tight') return found.likely === 'fails' ? 'probablyNot' : 'probably';
  return found.verdict === 'fits' ? 'will' : 'unplanned';
}
/* What check found holds for the words that it gives: with another GPU or release each is planned again. False: stopped. */
async function judge(mine, commands, chosen) {
  for (const [i, found] of commands.entries()) {
    const asked = hasGpu(found, i === chosen) ? planWords(found, i === chosen) : null;
    if (!asked || asked.join('\n') === found.plan.join('\n')) continue;
    const again = await run(['plan', '--json', '--offline', ...asked], cacheFiles(), ENVIRONMENT);
    if (!again || mine !== turn) return false;
    let said = null;
    try { said = JSON.parse(again.out); } catch { /* it cannot be planned so */ }
    Object.assign(found, said ? { verdict: said.verdict, likely: said.likely, gpu: said.gpu.name, engine_version: said.engine.version, taken: said.engine.name, problem: null }
      : { verdict: null, gpu: null, problem: again.err });
  }
  return true;
}
const labelOf = (found, i) => found.name || found.model || String(i + 1);
function sentenceOf(commands) {
  const groups = STANDS.map(stands => [stands, commands.map((found, i) => [standsOf(found), labelOf(found, i)]).filter(([is]) => is === stands).map(([, label]) => label)]).filter(([, list]) => list.length);
  return groups.map(([stands, list], i) => words(i ? 'group' : 'worst', list.length, ...(i ? [] : [commands.length]), words(stands), list.slice(0, 4).join(', ') + (list.length > 4 ? ', +' + (list.length - 4) : ''))).join(' ');
}
const pressed = () => { const at = $('choices').hidden ? -1 : [...$('choices').querySelectorAll('button')].findIndex(one => one.getAttribute('aria-pressed') === 'true'); return at < 0 ? null : at; };
const part = (kind, text, of = {}) => Object.assign(document.createElement(kind), { textContent: text }, of);
function offer(commands, chosen, choose) {
  const group = $('choices'), focused = group.contains(document.activeElement);
  group.hidden = commands.length < 2;
  overall = null;
  if (commands.length < 2) return group.replaceChildren();
  const worst = STANDS.find(stands => commands.some(found => standsOf(found) === stands));
  overall = { title: sentenceOf(commands), kind: COLOURS[worst], label: labelOf(commands[chosen], chosen) };
  const head = part('tr', ''), body = part('tbody', ''), table = part('table', '');
  head.append(part('th', words('theCommand'), { scope: 'col' }), part('th', words('theAnswer'), { scope: 'col' }));
  commands.forEach((found, i) => {
    const one = button([found.name, found.model].filter(Boolean).join(': ') || found.kind + ' ' + (i + 1), () => choose(i));
    one.setAttribute('aria-pressed', String(i === chosen));
    const row = part('tr', ''), first = part('td', ''), last = part('td', ''), stands = standsOf(found);
    const why = stands !== 'unplanned' ? '' : !hasGpu(found, i === chosen) && found.plan ? words('needGpu') : problemOf(found.problem || '');
    first.append(one, part('span', [found.gpu, found.engine && found.engine_version ? titleOf(found.taken || found.engine) + ' ' + found.engine_version : '',
      found.beside ? words('beside', (found.beside_bytes / 2 ** 30).toFixed(2), found.beside) : ''].filter(Boolean).join(', '), { className: 'dim' }));
    last.append(part('b', words(stands), { className: COLOURS[stands] }), part('span', why, { className: 'dim' }));
    row.append(first, last);
    body.append(row);
  });
  table.append(part('thead', ''), body);
  table.firstChild.append(head);
  group.replaceChildren(table);
  if (focused) group.querySelectorAll('button')[chosen].focus({ preventScroll: true });
}
/* `chosen`: one that somebody chose; null: of several the worst that can be planned. */
async function plan(mine, text, chosen, choose, none = 'noCommand') {
  let found = await commandsIn(text, $('gpu').value.trim());
  if (!found || mine !== turn) return end(mine, null);
  await names;
  const named = found.commands[Math.min(chosen || 0, found.commands.length - 1)];
  if (named && nameModel(named.model)) found = await commandsIn(text, $('gpu').value.trim());
  if (!found || mine !== turn) return end(mine, null);
  const commands = found.commands, gaps = found.not_looked_at.map(gap => gap.problem);
  if (!commands.length) return giveUp(mine, [words(none), ...gaps].join(' '));
  const onGpu = commands.map((c, i) => i).filter(i => hasGpu(commands[i], i === chosen));
  let one = chosen === null ? onGpu[0] || 0 : Math.min(chosen, commands.length - 1);
  setEngine(commands[one].engine);
  if (commands.length > 1 && onGpu.length) {
    if (!await judge(mine, commands, one)) return end(mine, null);
    if (chosen === null) one = onGpu.sort((a, b) => rank(commands[a]) - rank(commands[b]) || a - b)[0];
    if (!$('version').value) setEngine(commands[one].engine);
    offer(commands, one, choose);
  } else offer([], 0, choose);
  if (gaps.length) say(words('gaps', gaps.length) + ' ' + gaps.slice(0, 3).join('; '));
  await planOne(mine, commands, one);
}
/* Those without a plan are no answer to show first. */
const rank = found => found.verdict ? STANDS.indexOf(standsOf(found)) : STANDS.length;
/* ---- the box, or a paste that is too long for one ---- */
const LARGE = 200000; /* more freezes a text box */
let held = null;
function hold(text) {
  held = text === null ? null : new File([text], 'pasted.txt');
  $('input').value = '';
  const remove = button('\u00d7', () => { hold(null); tellStale(); }), chip = document.createElement('span');
  $('held').hidden = held === null;
  if (held === null) return;
  const name = words('held', (held.size / 1e6).toFixed(1));
  remove.setAttribute('aria-label', words('remove', name));
  chip.className = 'chip';
  chip.append(name + ' ', remove);
  $('held').replaceChildren(chip);
}
/* The address of a model's page is its name. */
const tidy = text => text.length < 2000 ? text.replace(/https?:\/\/(?:www\.)?huggingface\.co\/([\w.-]+\/[\w.-]+)(?:\/tree\/[\w.-]+)?\/?(?=$|[\s'"])/g, '$1') : text;
const question = () => held || tidy($('input').value);
const planNow = (chosen = null) => answer(question(), chosen);

/* ---- links: the commands that were recognised, never the text they stood in ---- */
const LINK_MOST = 6000;
function quoted(word) { return /^[\w@%+=:,.\/-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'"; }
const lineOf = found => { const list = commandOf(found.plan); return list.length === 1 ? list[0] : list.map(quoted).join(' '); };
const LINK_OPTIONS = ['gpu', 'engine', 'gpu-total', 'gpu-used', 'gpu-cc', 'host-ram'];
/* The address of a question; null: there is none. Each plan is a step of the history, and so is what comes after it. */
function setLink(parts) {
  const kept = new URLSearchParams(parts || {});
  if (language) kept.set('lang', 'zh');
  if (new URLSearchParams(location.hash.slice(1)).has('embed')) kept.set('embed', '');
  const now = new URLSearchParams(location.hash.slice(1)), hash = String(kept) ? '#' + kept : '';
  if (hash === (String(now) ? '#' + now : '')) return;
  try { history[now.get('c') ? 'pushState' : 'replaceState'](null, '', location.pathname + location.search + hash); } catch { /* a page from a file may not */ }
}
async function keepInLink(commands, chosen, options) {
  const lines = commands.filter(found => found.plan).map(lineOf), all = lines.join('\n').length < LINK_MOST;
  const mine = turn, text = all ? lines.join('\n') : lineOf(commands[chosen]);
  const clean = await run(['redact', '-'], [['-', text]], ENVIRONMENT);
  if (!clean || clean.code !== 0 || mine !== turn) return;
  const parts = { c: clean.out.trim() }, index = commands.filter(found => found.plan).indexOf(commands[chosen]);
  for (const name of LINK_OPTIONS) if (options[name]) parts[name] = options[name];
  if (all && lines.length > 1) parts.n = index;
  setLink(parts);
  $('linkText').textContent = Object.entries(parts).map(([name, value]) => (name === 'c' ? '' : name + ': ') + value).join('\n');
}
function fromLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.get('lang')) setLanguage(parts.get('lang'));
  if (!parts.get('c')) return false;
  hold(null);
  $('input').value = parts.get('c');
  $('gpu').value = parts.get('gpu') || '';
  const release = parts.get('engine') || (parts.get('vllm') ? 'vllm=' + parts.get('vllm') : '');
  const valid = /^[a-z]+=[\w.]+$/.test(release);
  if (valid && ![...$('version').options].some(o => o.value === release)) $('version').append(new Option(release, release));
  $('version').value = valid ? release : '';
  extra = {};
  for (const name of LINK_OPTIONS.slice(2)) if (parts.get(name)) extra[name] = parts.get(name);
  return true;
}
const linkChoice = () => { const n = new URLSearchParams(location.hash.slice(1)).get('n'); return n === null ? null : Math.max(0, Number(n) || 0); };

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
    $('said').append(' ', button(words('planGo') + ': ' + line.slice(0, 80), () => { hold(null); $('input').value = line; planNow(); }));
  }
}
async function replay(mine, input) {
  const files = inputs([input]);
  end(mine, await run(['replay', '--format', 'html', ...LANGUAGE(), files[0][0]], files, ENVIRONMENT), false);
}

/* ---- what people do ---- */
/* A config is for the model that is named now; without one, for the next. */
async function takeConfig(text, pasted) {
  const at = pressed(), mine = begin();
  loose = text;
  if (pasted) $('input').value = '';
  const command = $('input').value;
  const found = command.trim() ? await check(command, '') : null;
  if (mine !== turn) return;
  tellConfigs();
  if (found && found.commands.some(c => c.model)) return planNow(at);
  giveUp(mine, words('keptConfig'));
  $('input').focus();
}
async function take(list) {
  const files = [...list];
  if (files.length < 2) return files.length ? answer(files[0]) : undefined;
  const mine = begin();
  shown = () => take(files);
  return explain(mine, files);
}
$('ask').addEventListener('submit', event => { event.preventDefault(); asked = true; planNow(); });
$('ask').addEventListener('input', tellStale);
$('input').addEventListener('input', () => { delete document.body.dataset.answered; extra = null; if (held) { const typed = $('input').value; hold(null); $('input').value = typed; } });
$('input').addEventListener('keydown', event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit(); });
$('input').addEventListener('paste', event => {
  const text = event.clipboardData ? event.clipboardData.getData('text') : '';
  if (text.length < LARGE) return;
  event.preventDefault();
  hold(text);
  asked = true;
  planNow();
});
$('file').addEventListener('change', event => { const files = [...event.target.files]; event.target.value = ''; asked = true; take(files); });
const EXAMPLES = [['vllm serve Qwen/Qwen3-8B', '4090'], ['python -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 32768', 'L4'],
  ["ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (11.32 GiB). Based on the available memory, the estimated maximum model length is 92720.", '']];
for (const one of document.querySelectorAll('[data-example]')) one.addEventListener('click', () => {
  hold(null);
  [$('input').value, $('gpu').value] = EXAMPLES[one.dataset.example];
  $('version').value = '';
  extra = null;
  $('ask').requestSubmit();
});
async function copy(text) {
  try { await navigator.clipboard.writeText(text); showState(words('copied')); } catch { showState(text); }
}
$('bestCopy').addEventListener('click', () => copy($('bestCommand').textContent));
$('bestPlan').addEventListener('click', () => { hold(null); $('input').value = $('bestCommand').textContent; $('ask').requestSubmit(); });
$('linkCopy').addEventListener('click', () => copy(location.href));
addEventListener('dragover', event => { event.preventDefault(); document.body.classList.add('over'); });
addEventListener('dragleave', event => { if (!event.relatedTarget) document.body.classList.remove('over'); });
addEventListener('drop', event => { event.preventDefault(); document.body.classList.remove('over'); asked = true; take(event.dataTransfer.files); });
$('stop').addEventListener('click', () => { stop(); end(turn, null); });
/* Kept for the next visit, where the browser allows it. */
const kept = { get: name => { try { return localStorage.getItem('oomsight-' + name); } catch { return null; } },
  set: (name, value) => { try { localStorage.setItem('oomsight-' + name, value); } catch { /* then not */ } } };
/* The same question in other words or colours: what was typed since is not in it. */
function again() {
  if (!shown || $('answer').hidden) return;
  const before = answered;
  shown();
  answered = before;
}
$('language').addEventListener('click', () => {
  setLanguage(language ? 'en' : 'zh');
  kept.set('language', language ? 'zh' : 'en');
  showReleases(); tellConfigs();
  again();
});
$('theme').addEventListener('click', () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  kept.set('theme', document.documentElement.dataset.theme);
  again();
});
addEventListener('popstate', () => {
  const n = linkChoice();
  if (fromLink()) return planNow(n);
  begin(); $('wait').hidden = true; showState('');
});

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
const titleOf = name => (engines.find(one => one.engine === name) || { title: { vllm: 'vLLM', sglang: 'SGLang' }[name] || name }).title;
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
  if (engine !== null && $('version').value && !$('version').value.startsWith(name + '=')) $('version').value = answered[3] = '';
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
  setLanguage(kept.get('language') || ((navigator.language || '').startsWith('zh') ? 'zh' : 'en'));
  if (/^(dark|light)$/.test(kept.get('theme'))) document.documentElement.dataset.theme = kept.get('theme');
  if (location.protocol === 'file:') return showState(words('serve'));
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
