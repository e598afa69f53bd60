/* Rules for a page that everybody can use, as findings over the DOM: the list is empty when all hold. After the rules that
 * axe-core users know by name (color-contrast, button-name, heading-order, ...), written for what our pages contain. */
(() => {
  const found = [], all = s => [...document.querySelectorAll(s)];
  const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
  const name = e => (e.tagName + (e.id ? '#' + e.id : '') + (e.className ? '.' + e.className : '') + ' ' + (e.textContent || '').trim().slice(0, 40)).trim();

  /* color-contrast: WCAG 2 relative luminance; 4.5:1, for large or bold 3:1 */
  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return { r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1 }; };
  const over = (t, u) => ({ r: t.r * t.a + u.r * (1 - t.a), g: t.g * t.a + u.g * (1 - t.a), b: t.b * t.a + u.b * (1 - t.a), a: 1 });
  const channel = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = c => 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
  const ratio = (a, b) => { const x = light(a), y = light(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
  const behind = e => {
    const stack = [];
    for (; e; e = e.parentElement) stack.push(parse(getComputedStyle(e).backgroundColor));
    return stack.reverse().reduce((under, c) => over(c, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  for (const e of all('body *')) {
    if (!shown(e) || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(e.tagName)) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e), bg = behind(e), ink = over(parse(style.color), bg), size = parseFloat(style.fontSize);
    const need = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700) ? 3 : 4.5;
    if (ratio(ink, bg) < need) found.push('color-contrast ' + ratio(ink, bg).toFixed(2) + ' < ' + need + ': ' + name(e));
    if (size < 12) found.push('text smaller than 12 px: ' + name(e));
  }
  /* non-text contrast: each piece of a bar against the page, 3:1 */
  const ground = parse(getComputedStyle(document.body).backgroundColor);
  for (const e of all('.bar i, .swatch')) {
    if (e.closest('.off')) continue;
    const r = ratio(parse(getComputedStyle(e).backgroundColor), ground);
    if (r < 3) found.push('non-text-contrast ' + r.toFixed(2) + ': ' + (e.title || name(e.parentElement)));
  }
  /* names */
  for (const e of all('button, a, input, select, textarea, [role=button], summary'))
    if (!(e.getAttribute('aria-label') || e.textContent.trim() || [...(e.labels || [])].some(l => l.textContent.trim()))) found.push('control without a name: ' + name(e));
  for (const e of all('[aria-label]')) {
    const text = e.tagName === 'BUTTON' && !e.querySelector('[aria-hidden]') ? e.textContent.trim().toLowerCase() : '';
    if (text && !['copied'].includes(text) && !e.getAttribute('aria-label').toLowerCase().includes(text)) found.push('label-content-name-mismatch: ' + name(e));
  }
  if (!document.documentElement.lang) found.push('html-has-lang');
  if (!document.title.trim()) found.push('document-title');
  if (all('main').length !== 1) found.push('landmark-one-main');
  if (all('h1').length !== 1) found.push('page-has-heading-one: ' + all('h1').length);
  let last = 0;
  for (const h of all('h1, h2, h3, h4').filter(shown)) {
    const rank = +h.tagName[1];
    if (last && rank > last + 1) found.push('heading-order: ' + name(h));
    last = rank;
  }
  const ids = all('[id]').map(e => e.id);
  for (const id of ids.filter((x, i) => ids.indexOf(x) !== i)) found.push('duplicate-id: ' + id);
  for (const e of all('[aria-labelledby]')) if (!document.getElementById(e.getAttribute('aria-labelledby'))) found.push('aria-valid-attr-value: ' + name(e));
  for (const e of all('th')) if (!e.getAttribute('scope')) found.push('th without scope: ' + name(e));
  for (const e of all('[tabindex]')) if (+e.tabIndex > 0) found.push('tabindex above 0: ' + name(e));
  for (const e of all('ul, ol')) for (const c of e.children) if (c.tagName !== 'LI') found.push('list: ' + name(c));
  for (const e of all('img')) if (!e.hasAttribute('alt')) found.push('image-alt');
  for (const e of all('.bar')) if (!e.closest('[aria-label]') && !e.parentElement.textContent.trim()) found.push('bar without words: ' + name(e));
  /* target-size: 24 px; reflow: nothing wider than the window */
  for (const e of all('button, summary').filter(shown)) { const r = e.getBoundingClientRect(); if (r.height < 24 || r.width < 24) found.push('target-size: ' + name(e)); }
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push('reflow: ' + document.documentElement.scrollWidth + ' px in ' + innerWidth);
  return found;
})()
