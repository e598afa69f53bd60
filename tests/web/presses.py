"""A real mouse on every control of a page: nothing may move between press and release, or the click is lost. Used for pages that are open in a
Browser; `walk` returns what was pressed and what went wrong."""
import json

CONTROLS = "button, summary, a[href], input, textarea, label"  # a select opens a list of the browser's own while it is pressed

# Nothing of the page is set off: a click ends where it is noted.
BEGIN = r"""(() => {
  if (window.pressed) return window.pressed.all().length;
  window.pressed = { events: [], from: null };
  for (const kind of ['mousedown', 'mouseup', 'click']) addEventListener(kind, event => {
    const on = event.target.closest && event.target.closest(window.pressed.controls) || event.target;
    if (kind === 'click' && !event.detail) return;
    window.pressed.events.push([kind, on]);
    if (kind === 'click') { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true);
  window.pressed.controls = %s;
  window.pressed.all = () => [...document.querySelectorAll(%s)].filter(e => !e.disabled && e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().right > 0);
  window.pressed.name = e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + ' ' + (e.textContent || '').trim().slice(0, 30);
  window.pressed.where = () => JSON.stringify(window.pressed.all().map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height].map(Math.round); }));
  return window.pressed.all().length;
})()"""
# The focus is where somebody typed; the control is brought to the middle, and the place is its own if nothing lies over it.
AIM = r"""(() => {
  const e = window.pressed.all()[%d], focus = document.querySelector(%s);
  if (focus) focus.focus({ preventScroll: true });
  e.scrollIntoView({ block: 'center', behavior: 'instant' });
  const r = e.getClientRects()[0], x = r.x + r.width / 2, y = r.y + r.height / 2, hit = document.elementFromPoint(x, y);
  window.pressed.events = [];
  window.pressed.from = window.pressed.where();
  return { name: window.pressed.name(e), x, y, own: !!hit && (e === hit || e.contains(hit)) };
})()"""
MOVED = "window.pressed.where() === window.pressed.from ? '' : window.pressed.from + ' -> ' + window.pressed.where()"
EVENTS = "window.pressed.events.map(([kind, e]) => kind + ' ' + window.pressed.name(e))"


def walk(browser, focuses, most=1000):
    """`focuses`: selectors of what has the focus before each press; `most`: so many controls, from the top."""
    count, pressed, wrong = browser.run(BEGIN % (json.dumps(CONTROLS), json.dumps(CONTROLS))), 0, []
    for focus in focuses:
        for number in range(min(count, most)):
            aim = browser.run(AIM % (number, json.dumps(focus)))
            if not aim["own"]:
                continue  # a label around its own input
            browser.mouse("mousePressed", aim["x"], aim["y"])
            moved = browser.run(MOVED)
            browser.mouse("mouseReleased", aim["x"], aim["y"])
            seen, pressed = browser.run(EVENTS), pressed + 1
            if moved or [line.split()[0] for line in seen] != ["mousedown", "mouseup", "click"] or len({line.split(" ", 1)[1] for line in seen}) != 1:
                wrong.append((focus, aim["name"], seen, moved[:200]))
    return pressed, wrong
