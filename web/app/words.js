/* The words of the page, English and Chinese. What the reports say comes from the command, in its own two languages. */
'use strict';
const WORDS = {
  skip: ['To the answer', '跳到回答'],
  brand: ['GPU memory before it runs out', '显存用尽之前'],
  theme: ['Dark or light', '深色或浅色'],
  title: ['Will it start? Why did it run out?', '能启动吗？为什么显存不够？'],
  private: ['Everything is computed in this page. Nothing you paste or drop leaves your machine.', '一切都在本页面内计算。您粘贴或拖入的内容不会离开您的电脑。'],
  planTitle: ['Before: a command', '启动之前：一条命令'],
  commandLabel: ['A vLLM or SGLang command, docker run, compose file or Kubernetes manifest', 'vLLM 或 SGLang 命令、docker run、compose 文件或 Kubernetes 清单'],
  gpuLabel: ['GPU', 'GPU'],
  versionLabel: ['Release', '版本'],
  versionOf: ['{} release', '{} 版本'],
  translated: ['as {} (flags translated)', '按 {}（参数转换）'],
  versionAuto: ['the command\'s, or newest', '按命令，否则最新'],
  planGo: ['Plan', '规划'],
  configDrop: ['config.json of the model', '模型的 config.json'],
  explainTitle: ['After: a log or a snapshot', '出错之后：日志或快照'],
  logLabel: ['A log of vLLM, SGLang, TGI or llama.cpp; as it is, prefixes and all', 'vLLM、SGLang、TGI 或 llama.cpp 的日志；原样粘贴，前缀不必删'],
  explainGo: ['Explain', '解释'],
  logDrop: ['a log, a memory snapshot (pickle) or a trace', '日志、显存快照（pickle）或轨迹'],
  dropHint: ['Files can be dropped anywhere on this page; gzip is unpacked.', '文件可拖到本页任意位置；gzip 会自动解压。'],
  answerTitle: ['Answer', '回答'],
  stop: ['Stop', '停止'],
  link: ['Copy a link to this plan', '复制此规划的链接'],
  save: ['Save the report', '保存报告'],
  foot: ['A plan or an explanation is the same as the command\'s:', '规划与解释和命令行的结果相同：'],
  working: ['Working ...', '正在计算……'],
  read: ['{} of {} MB read', '已读 {} / {} MB'],
  done: ['Answered in {} ms.', '用时 {} 毫秒。'],
  stopped: ['Stopped.', '已停止。'],
  copied: ['Copied. The link holds the commands that were found, the GPU and the release; no other text, and no secrets.', '已复制。链接只含找到的命令、GPU 和版本，不含其他文本和密钥。'],
  nothing: ['Paste something first.', '请先粘贴内容。'],
  emptyFile: ['The file is empty.', '文件是空的。'],
  other: ['{} is not planned here; its log can be explained: paste it into the other box.', '这里不规划 {}；可以解释它的日志：请贴到另一个框里。'],
  isLog: ['This is a log: it was explained.', '这是日志：已作解释。'],
  isCommand: ['This is a command: it was planned.', '这是命令：已作规划。'],
  inLog: ['A command stands in it.', '其中有一条命令。'],
  fileGpu: ['On {}, as the file says.', '按文件所写：{}。'],
  otherGpu: ['The file asks for {}; planned on {}, as named here.', '文件要求 {}；按此处填写的 {} 规划。'],
  needGpu: ['Name a GPU, for example H100 or 4090x2.', '请写明 GPU，例如 H100 或 4090x2。'],
  noCommand: ['No command that starts vLLM or SGLang was found in this text.', '此文本中没有找到启动 vLLM 或 SGLang 的命令。'],
  known: ['{}: its config.json is known here.', '{}：本页自带其 config.json。'],
  given: ['{}: planned from the config.json you gave.', '{}：按您提供的 config.json 规划。'],
  loose: ['your config.json: for the model you name next', '您的 config.json：用于接下来写明的模型'],
  keptConfig: ['config.json is kept for the model you name next.', 'config.json 已保留，用于接下来写明的模型。'],
  remove: ['Remove: {}', '移除：{}'],
  askConfig: ['{} is known here and is planned by its own config.json, not by the one you gave.', '本页自带 {} 的 config.json 并按它规划，而不是您提供的那个。'],
  takeMine: ['Plan it from the config.json you gave', '按您提供的 config.json 规划'],
  takeKnown: ['Keep the known one', '仍用自带的'],
  unknown: ['The config.json of {} is not here. Drop it on this page', '本页没有 {} 的 config.json。请把它拖到本页'],
  or: ['or', '或'],
  fetch: ['fetch it from huggingface.co (which then learns the name of the model)', '从 huggingface.co 获取（对方将得知模型名称）'],
  fetched: ['{}: config.json fetched from huggingface.co.', '{}：已从 huggingface.co 获取 config.json。'],
  refused: ['huggingface.co did not give the config.json of {} ({}). A gated model wants its licence accepted there: download config.json and drop it here.', 'huggingface.co 没有给出 {} 的 config.json（{}）。受限模型需先在该站接受许可：请下载 config.json 后拖到这里。'],
  notConfig: ['{} is no config.json of a model.', '{} 不是模型的 config.json。'],
  report: ['report', '报告'],
};
let language = 0;
function words(key, ...held) {
  let at = 0;
  return WORDS[key][language].replace(/\{\}/g, () => held[at++]);
}
function setLanguage(code) {
  language = code === 'zh' ? 1 : 0;
  document.documentElement.lang = language ? 'zh' : 'en';
  for (const e of document.querySelectorAll('[data-w]')) e.textContent = words(e.dataset.w);
  const other = document.getElementById('language');
  other.textContent = language ? 'English' : '中文';
  other.lang = language ? 'en' : 'zh';
}
