// What sheets.py asks of a page: its controls, one of each kind, and what a program can tell of its words.

window.controls = () => {
  // One of each kind: by what it is and how it is dressed.
  const found = [];
  for (const one of document.querySelectorAll('button, a[href], summary, select, textarea, input, [role=slider], [role=button], label')) {
    if (!one.checkVisibility({ visibilityProperty: true })) continue;
    const { x, y, width, height } = one.getBoundingClientRect();
    const over = document.elementFromPoint(x + width / 2, y + height / 2);
    if (over && !one.contains(over) && !over.contains(one)) continue; // something lies over it
    if (width < 2 || height < 2 || x < 0 || y + scrollY < 0 || x + width > innerWidth + 1) continue;
    const kind = [...one.classList].filter((name) => !name.startsWith('svelte-')).sort().join('.');
    const state = ['aria-pressed', 'aria-current', 'aria-expanded', 'type'].map((name) => one.getAttribute(name) ?? '').join();
    const scope = one.parentElement?.className.toString().replace(/svelte-\w+/g, '').trim();
    found.push({ key: `${one.tagName} ${kind} ${state} in ${scope}`.toLowerCase(), x, y: y + scrollY, width, height });
  }
  return found;
};

window.tell = (language) => {
  const found = [];
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const name = (one) => `${one.tagName.toLowerCase()}.${[...one.classList].filter((c) => !c.startsWith('svelte-')).join('.')} "${one.textContent.trim().slice(0, 24)}"`;
  for (const one of document.querySelectorAll('body *')) {
    if (!seen(one) || one.closest('svg, canvas, .hidden, .skip, [aria-hidden=true]')) continue;
    const style = getComputedStyle(one);
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (own && style.overflow !== 'visible' && style.textOverflow !== 'ellipsis' && one.scrollWidth > one.clientWidth + 1 && !/auto|scroll/.test(style.overflowX)) found.push(`cut off: ${name(one)}`);
    const { left, right } = one.getBoundingClientRect();
    let scrolls = false;
    for (let up = one.parentElement; up; up = up.parentElement) scrolls ||= /auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX);
    if (own && !scrolls && (right > innerWidth + 1 || left < -1)) found.push(`sticks out: ${name(one)}`);
    if (language !== 'en' && own && !one.closest('.mono, code, pre, .chips, .chip, textarea, [lang=en], .textbox, .bars, .brand, .model, kbd, .word, samp, .languages')) {
      for (const node of one.childNodes) {
        const words = node.nodeType === 3 ? (node.data.match(/[A-Za-z]{4,}/g) ?? []) : [];
        if (words.length > 1) found.push(`English? ${name(one)}: ${words.slice(0, 6).join(' ')}`);
      }
    }
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  return [...new Set(found)];
};

window.disable = (on) => {
  for (const one of document.querySelectorAll('button, input, select, textarea')) {
    if (on) one.was = one.disabled;
    one.disabled = on || one.was;
  }
};
