/* The words of the page, English and Chinese. What the reports say comes from the command, in its own two languages. */
'use strict';
const WORDS = {
  skip: ['To the answer', '跳到回答'],
  brand: ['GPU memory before it runs out', '显存用尽之前'],
  theme: ['Dark or light', '深色或浅色'],
  title: ['Will it start? Why did it run out of memory?', '能启动吗？为什么显存不够？'],
  inputLabel: ['Paste a command, a model\'s name, a manifest or a log; or drop a file', '粘贴命令、模型名称、清单或日志；也可拖入文件'],
  gpuLabel: ['GPU (needed for a plan)', 'GPU（规划必填）'],
  fileLabel: ['or a file: log, manifest, config.json, snapshot, trace; gzip too', '或选择文件：日志、清单、config.json、快照、轨迹；可为 gzip'],
  examples: ['Try:', '试试：'],
  example0: ['a plan that fails', '启动失败的规划'],
  example1: ['an SGLang plan', 'SGLang 规划'],
  example2: ['a log', '一段日志'],
  go: ['Answer', '回答'],
  planGo: ['Plan', '规划'],
  best: ['Suggested command', '建议的命令'],
  copy: ['Copy', '复制'],
  copied: ['Copied.', '已复制。'],
  planThis: ['Plan this', '规划这条命令'],
  givesUp: ['Trade-off: {}', '代价：{}'],
  link: ['Link to this plan', '此规划的链接'],
  linkHolds: ['It holds this and nothing else:', '链接只含以下内容：'],
  linkCopy: ['Copy the link', '复制链接'],
  done: ['Answered in {} ms.', '用时 {} 毫秒。'],
  stale: ['Out of date: the question was changed after this answer. Press Answer.', '已过时：此回答之后问题有改动。请按“回答”。'],
  other: ['{} is not planned here; its log can be explained: paste the log.', '这里不规划 {}；可以解释它的日志：请粘贴日志。'],
  nothingSeen: ['This was not recognised as a command, a model\'s name, a manifest or a log.', '无法识别为命令、模型名称、清单或日志。'],
  took: ['Taken for {}.', '识别为{}。'],
  aCommand: ['a command', '命令'],
  aLog: ['a log', '日志'],
  aTrace: ['a memory snapshot or a trace', '显存快照或轨迹'],
  asLog: ['Explain it as a log', '按日志解释'],
  asCommand: ['Look for a command in it', '在其中查找命令'],
  held: ['pasted text, {} MB', '粘贴的文本，{} MB'],
  fromText: ['from the text', '来自文本'],
  fromYou: ['given', '已指定'],
  fromUs: ['assumed', '默认'],
  serve: ['A page opened from a file cannot load its program. Serve this folder: python3 -m http.server -d FOLDER, then open http://127.0.0.1:8000/.', '从文件打开的页面无法加载程序。请用 python3 -m http.server -d 文件夹 提供服务，再打开 http://127.0.0.1:8000/。'],
  noGpu: ['No GPU is called {}.', '没有名为 {} 的 GPU。'],
  nearest: ['Do you mean', '您是指'],
  unknown: ['The config.json of {} is not here. Drop it on this page.', '本页没有 {} 的 config.json。请把它拖到本页。'],
  refused: ['huggingface.co did not give the config.json of {} ({}). A gated model wants its licence accepted there: download config.json and drop it here.', 'huggingface.co 没有给出 {} 的 config.json（{}）。受限模型需先在该站接受许可：请下载 config.json 后拖到这里。'],
  noNetwork: ['huggingface.co could not be reached. Without a network, download config.json elsewhere and drop it here.', '无法连接 huggingface.co。没有网络时，请在别处下载 config.json 后拖到这里。'],
  private: ['Everything is computed in this page. Nothing you paste or drop leaves your machine.', '一切都在本页面内计算。您粘贴或拖入的内容不会离开您的电脑。'],
  versionLabel: ['Release', '版本'],
  versionOf: ['{} release', '{} 版本'],
  translated: ['as {} (flags translated)', '按 {}（参数转换）'],
  versionAuto: ['the command\'s, or newest', '按命令，否则最新'],
  stop: ['Stop', '停止'],
  save: ['Save the report', '保存报告'],
  foot: ['A plan or an explanation is the same as the command\'s:', '规划与解释和命令行的结果相同：'],
  working: ['Working ...', '正在计算……'],
  read: ['{} of {} MB read', '已读 {} / {} MB'],
  stopped: ['Stopped.', '已停止。'],
  nothing: ['Paste something first.', '请先粘贴内容。'],
  emptyFile: ['The file is empty.', '文件是空的。'],
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
  or: ['Or', '或'],
  fetch: ['fetch it from huggingface.co (which then learns the name of the model)', '从 huggingface.co 获取（对方将得知模型名称）'],
  fetched: ['{}: config.json fetched from huggingface.co.', '{}：已从 huggingface.co 获取 config.json。'],
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
