// What test_states.py asks of a page: put all of it in a state, and read what can be seen.

window.become = states => {
  // As if every element were in these states: `:hover` and `:not(.never)` are equally specific.
  const pattern = new RegExp(`:(${states.join('|')})(?![\\w-])`, 'g');
  const walk = rules => {
    for (const rule of rules) {
      if (rule.selectorText) {
        rule.written ??= rule.selectorText;
        const wanted = states.length ? rule.written.replace(pattern, ':not(.never)') : rule.written;
        if (rule.selectorText !== wanted) rule.selectorText = wanted;
      }
      if (rule.cssRules) walk(rule.cssRules);
    }
  };
  for (const sheet of document.styleSheets) walk(sheet.cssRules);
};

window.readable = () => {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const parse = css => {
    if (!known.has(css)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = css;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(css, [r, g, b, a / 255]);
    }
    return known.get(css);
  };
  const mix = (top, under, share) => [0, 1, 2].map(i => top[i] * share + under[i] * (1 - share));
  const over = (top, under) => mix(top, under, top[3]);
  const light = colour => {
    const [r, g, b] = colour.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  /** What is seen of a colour on an element, and of the ground under it. */
  const seen = (element, colour) => {
    const chain = [];
    for (let one = element; one; one = one.parentElement) chain.unshift(getComputedStyle(one));
    const go = (i, behind) => {
      const ground = over(parse(chain[i].backgroundColor), behind);
      const pair = i + 1 < chain.length ? go(i + 1, ground) : [over(parse(colour), ground), ground];
      return pair.map(one => mix(one, behind, Number(chain[i].opacity)));
    };
    return go(0, [255, 255, 255]);
  };
  const found = [];
  const look = (control, element, colour, least, words) => {
    const [front, ground] = seen(element, colour);
    const off = control.matches(':disabled') || !!control.querySelector(':scope > input:disabled');
    const ratio = contrast(front, ground);
    if (ratio >= (off ? 3 : least)) return;
    const name = [control.tagName.toLowerCase(), ...control.classList].filter(one => !one.startsWith('svelte-')).join('.');
    const colours = `rgb(${front.map(Math.round)}) on rgb(${ground.map(Math.round)})`;
    found.push(`${ratio.toFixed(2)} ${off ? 'disabled ' : ''}${name} "${words.trim().slice(0, 30)}" ${colours}`);
  };
  let looked = 0;
  for (const control of document.querySelectorAll('button, a[href], summary, label, select, textarea, input, [role=button]')) {
    if (!control.checkVisibility({ visibilityProperty: true })) continue;
    looked++;
    const style = getComputedStyle(control);
    if (control.matches('select, textarea, input:not([type=radio], [type=checkbox], [type=range])')) {
      look(control, control, style.color, 4.5, control.value);
      if (control.placeholder) look(control, control, getComputedStyle(control, '::placeholder').color, 4.5, control.placeholder);
    }
    const texts = document.createTreeWalker(control, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const holder = texts.currentNode.parentElement;
      if (!texts.currentNode.data.trim() || !holder.checkVisibility({ visibilityProperty: true }) || holder.closest('title, select, textarea, .hidden')) continue;
      look(control, holder, getComputedStyle(holder).color, 4.5, texts.currentNode.data);
    }
    for (const icon of control.querySelectorAll('svg[focusable]')) look(control, icon, getComputedStyle(icon).stroke, 3, 'icon');
  }
  return [looked, [...new Set(found)]];
};

window.chosen = () => {
  // Of each list: one that is chosen beside one that is not, by what tells them apart.
  const found = [];
  for (const chosen of document.querySelectorAll('[aria-pressed=true], [aria-current]:not([aria-current=false]), .chosen')) {
    if (!chosen.checkVisibility()) continue;
    const list = chosen.closest('ul, ol, tbody, fieldset, [role=group], nav') ?? chosen.parentElement;
    const kind = one => one.className.replace(/\b(chosen|odd|here|now|lit)\b/g, '').trim();
    const free = one => !one.matches('[aria-pressed=true], [aria-current], .chosen');
    const other = [...list.querySelectorAll(chosen.tagName)].find(one => free(one) && kind(one) === kind(chosen));
    if (!other) continue;
    const [a, b] = [chosen, other].map(one => getComputedStyle(one));
    const name = `${chosen.tagName.toLowerCase()}.${chosen.className} ${chosen.textContent.trim().slice(0, 20)}`;
    found.push([name, ['backgroundColor', 'fontWeight'].filter(property => a[property] !== b[property])]);
  }
  return found;
};
