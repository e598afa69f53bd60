/* The order and the colours of a report, without a browser: node report_words.js. */
'use strict';
const fs = require('fs'), path = require('path'), assert = require('assert');
const source = fs.readFileSync(path.join(__dirname, '../../web/report.html'), 'utf8');
const page = name => source.slice(source.indexOf('function ' + name));
const plan = page('planPage');
assert.ok(plan.indexOf('fixes(') > 0 && plan.indexOf('fixes(') < plan.indexOf('phases(doc),'), 'the suggestion stands before the ledger');
assert.ok(source.indexOf('fixes(doc.fixes, true)') < source.indexOf("section('Evidence'"), '... and before the evidence of an explanation');
const palette = source.match(/^const PALETTE = [^]*?\]\];/m)[0], color = source.match(/^function color\([^]*?^}/m)[0];
const of = new Function(palette + '\n' + color + '\nreturn color;')();
const owners = [...fs.readFileSync(path.join(__dirname, '../../src/ledger/owner.def'), 'utf8').matchAll(/^OWNER\(\w+, "([^"]+)"\)/gm)].map(m => m[1]);
for (const owner of owners) assert.ok(owner === 'unaccounted' || palette.includes("'" + owner + "'"), owner + ' has a colour of its own choice');
assert.strictEqual(of('weights'), of('weights'));
assert.notStrictEqual(of('weights'), of('KV cache'));
assert.ok(!/\.cards b \{[^}]*overflow-wrap: anywhere/.test(source), 'a word is not cut in its middle');
/* A text of which nothing can be told is neither good nor bad. */
const incident = page('incidentPage');
for (const state of ['nothing_recognised', 'binary', 'empty']) assert.ok(incident.includes("'" + state + "'"), state + ' has a headline of its own');
assert.ok(/unread \? 'NOTHING RECOGNISED'/.test(incident) && /unread \? 'dim' : 'good'/.test(incident), 'nothing recognised is grey');
const title = new Function(source.match(/^const TITLES = .*$/m)[0] + '\n' + source.match(/^function engineTitle\(.*$/m)[0] + '\nreturn engineTitle;')();
assert.strictEqual(title({ name: 'sglang', version: '0.5.23' }), 'SGLang', 'the subtitle has the name of its own engine');
assert.strictEqual(title({ name: 'vllm' }), 'vLLM');
assert.ok(!/'\), vLLM '|\[\['vLLM'\]/.test(source), 'no other name stands there');
/* The same words as the text: a guess is said as one, and an unknown stage is not named. */
const stage = new Function(source.match(/^function stageWords\([^]*?^}/m)[0] + '\nreturn stageWords;')();
assert.strictEqual(stage({ is_oom: true, phase: 'kv_alloc', phase_sure: 0.9, confidence: 0.9 }), 'in kv_alloc');
assert.strictEqual(stage({ is_oom: true, phase: 'kv_alloc', phase_sure: 0.45, confidence: 0.4 }), 'perhaps in kv_alloc (uncertain)');
assert.strictEqual(stage({ is_oom: true, phase: 'unknown', phase_sure: 0.2, confidence: 0.2 }), ' (uncertain)');
const why = new Function(source.match(/^function phaseWords\([^]*?^}/m)[0] + '\nreturn phaseWords;')();
assert.strictEqual(why({ basis: 'stack', phase_why: 'frames of graph capture' }), 'The stack shows: frames of graph capture');
assert.strictEqual(why({ basis: null, phase_why: 'nothing shows a stage' }), 'nothing shows a stage');
const header = fs.readFileSync(path.join(__dirname, '../../src/explain/explain.h'), 'utf8');
const bases = [...header.matchAll(/^ +X\([A-Z]+, "(\w+)", "([a-z ]+)"\)/gm)];
assert.strictEqual(bases.length, 5);
for (const [, word, words] of bases)
  assert.strictEqual(why({ basis: word, phase_why: '' }).toLowerCase(), words + ': ', 'the words of the text');
assert.ok(fs.readFileSync(path.join(__dirname, '../../src/report/explain_text.c'), 'utf8').includes('PHASE_GUESSED 0.75'), 'one threshold');
/* One cause: the tile and "Why" name the same one, and what else is possible is said to be beside it. */
const causes = new Function(source.match(/^function causeWords\([^]*?^}/m)[0] + '\nreturn causeWords;')();
assert.deepStrictEqual(causes({ cause: 'fragmentation', cause_why: 'in pieces', also: ['activation_peak', 'lora'] }),
  { tile: ['fragmentation', 'also possible: activation_peak; lora'], why: ['fragmentation', ': ', 'in pieces', '; ', 'also possible: activation_peak; lora'] });
assert.deepStrictEqual(causes({ cause: 'host_ram', cause_why: '', also: [] }), { tile: ['host_ram', ''], why: ['host_ram'] });
assert.ok(!/doc\.cause\b|doc\.cause_why \?/.test(incident.slice(0, incident.indexOf('/* ---- the page'))), 'no other place makes words of a cause');
console.log('ok');
