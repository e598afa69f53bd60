/* The words that the page gives to the command, and those of a link, without a browser: node app_words.js. Functions are taken out of
 * web/app/app.js as they stand. */
'use strict';
const fs = require('fs'), path = require('path'), assert = require('assert');
const source = fs.readFileSync(path.join(__dirname, '../../web/app/app.js'), 'utf8');
/* on one line, or up to the brace at the start of one */
const take = name => source.match(new RegExp('^((?:async )?function|const) ' + name + '\\b(?:.*[;}]$|[^]*?^})', 'm'))[0];
const names = ['optionsOf', 'commandOf', 'quoted', 'lineOf', 'isHubName'];
const { optionsOf, commandOf, quoted, lineOf, isHubName } = new Function(names.map(take).join('\n') + '\nreturn { ' + names.join(', ') + ' };')();
const words = ['--gpu', 'NVIDIA-L4', '--engine', 'sglang=0.5.23', '--', 'sglang', 'serve', 'm', '--gpu', 'x'];
assert.deepStrictEqual(optionsOf(words), { gpu: 'NVIDIA-L4', engine: 'sglang=0.5.23' }, "SGLang's version is not vLLM's");
assert.deepStrictEqual(commandOf(words), ['sglang', 'serve', 'm', '--gpu', 'x']);
assert.deepStrictEqual(optionsOf(['--', 'vllm', 'serve', 'm']), {}, 'a release that nobody named is the newest, and is said to be assumed');
assert.strictEqual(lineOf({ plan: ['--', 'vllm', 'serve', 'm', '--x', '{"a": 1}', "it's"] }), "vllm serve m --x '{\"a\": 1}' 'it'\\''s'");
assert.strictEqual(lineOf({ plan: ['--', 'LLM(model="m")'] }), 'LLM(model="m")');
assert.strictEqual(quoted('$(reboot)'), "'$(reboot)'");
assert.ok(isHubName('Qwen/Qwen3-8B') && isHubName('gpt2') && !isHubName('/models/mine') && !isHubName('a/../b'));
/* no device of ours when nobody named one */
assert.ok(!/'--gpu', '/.test(source), 'a GPU that nobody named is asked for');
/* what a link is made of: words of the command's own answer, never the text of a box */
assert.ok(!/\.value/.test(take('keepInLink')) && !/\.value/.test(take('setLink')), 'no text of a box is in a link');
console.log('ok');
