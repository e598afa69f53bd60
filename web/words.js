/* The page in the reader's language: what is written into it in English is found in the catalogue by its pattern ({} stands
 * for what was put in), as the text report does. Code and quoted messages stay as they are. */
'use strict';
{
  const pairs = JSON.parse(document.getElementById('words').textContent);
  const literals = pairs.map(([en]) => en.split('{}'));
  const exact = new Map(pairs.filter(([en]) => !en.includes('{}')));
  const patterns = pairs.map(([, zh], i) => [literals[i], zh]).filter(([l]) => l.length > 1);
  function held(literal, text) {
    const slots = literal.length - 1, last = literal[slots];
    if (!text.startsWith(literal[0]) || !text.endsWith(last)) return null;
    const out = [];
    let at = literal[0].length;
    for (let i = 1; i < slots; i++) {
      const found = text.indexOf(literal[i], at + 1);
      if (found < 0) return null;
      out.push(text.slice(at, found)); at = found + literal[i].length;
    }
    if (text.length - last.length <= at) return null;
    out.push(text.slice(at, text.length - last.length));
    /* a pattern of little text is about one word */
    return literal.join('').length < 5 && out.some(o => o.includes(' ')) ? null : out;
  }
  function list(text, depth) {
    const at = text.indexOf(text.includes('; ') ? '; ' : ', ');
    if (at < 1) return null;
    const head = translated(text.slice(0, at), depth + 1), tail = translated(text.slice(at + 2), depth);
    return head !== null && tail !== null ? head + (text[at] === ',' ? '\u3001' : '\uff1b') + tail : null;
  }
  function translated(text, depth) {
    if (depth > 2 || !text || text.length > 4096) return null;
    if (exact.has(text)) return exact.get(text);
    /* a list that was put in: its parts are known better than what looks like the whole */
    if (depth > 0 && text.includes('; ')) { const parts = list(text, depth); if (parts !== null) return parts; }
    for (const [literal, zh] of patterns) {
      const pieces = held(literal, text);
      if (!pieces) continue;
      let next = 0;
      return zh.replace(/\{([1-9]?)\}/g, (_, n) => { const p = pieces[n ? n - 1 : next++], t = translated(p, depth + 1); return t === null ? p : t; });
    }
    return list(text, depth);
  }
  const words = text => text.split('\n').map(line => line.replace(/^(\s*)(.*?)(\s*)$/s, (_, a, t, b) => { const found = translated(t, 0); return a + (found === null ? t : found) + b; })).join('\n');
  const known = new Map();
  const say = text => { if (!known.has(text)) known.set(text, words(text)); return known.get(text); };
  const quoted = e => e && e.closest('code, pre, script, style, .mono');
  function node(n) {
    if (n.nodeType === 3) {
      if (quoted(n.parentElement)) return;
      const t = say(n.data); if (t !== n.data) n.data = t;
    } else if (n.nodeType === 1) {
      for (const a of ['title', 'aria-label']) if (n.hasAttribute(a)) { const t = say(n.getAttribute(a)); if (t !== n.getAttribute(a)) n.setAttribute(a, t); }
      n.childNodes.forEach(node);
    }
  }
  document.documentElement.lang = 'zh-CN';
  node(document.body);
  document.title = say(document.title);
  new MutationObserver(list => list.forEach(m => m.type === 'characterData' ? node(m.target) : m.addedNodes.forEach(node)))
    .observe(document.body, { subtree: true, childList: true, characterData: true });
}
