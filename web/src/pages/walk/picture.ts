/** The step as a drawing: what the page shows, with the names and numbers that stand there, drawn from the numbers. */

import { count, number, percent } from '../../lib/format';
import { colour, el, picture as sheet, text } from '../../lib/svg';
import { ids, visible, type Token } from '../../lib/token';
import { t } from '../../state/preferences.svelte';
import { MASKED, picture } from './paint';
import { attends, called, drawn, groupName, isShare, sentence, title as nameOf, type ModelMap, type Part, type Step, type View } from './steps';

const WIDE = 760;
const NAMES = 96;
const MANY = 40; // rows and columns up to which each has its name, and a table its numbers

interface Table {
  rows: number;
  columns: number;
  values: Float32Array;
}

const short = (name: string, most = 11): string => ([...name].length > most ? `${[...name].slice(0, most - 1).join('')}…` : name);
const show = (value: number, share: boolean): string => (value < MASKED ? '−∞' : share ? percent(value) : number(value));
const label = (x: number, y: number, words: string, kind = 'ink'): string => text(x, y, words, { 'font-size': 12, 'font-weight': 600, fill: colour(kind === 'line-strong' ? 'ink-2' : kind) });

/** How far the numbers of a strip reach. */
function reach(values: ArrayLike<number>, share: boolean): string {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i++) {
    if (values[i]! < MASKED) continue;
    low = Math.min(low, values[i]!);
    high = Math.max(high, values[i]!);
  }
  return high < low ? '' : low === high ? show(low, share) : `${show(low, share)} … ${show(high, share)}`;
}

interface Band {
  name: string;
  kind: string;
  sign?: string;
  values: ArrayLike<number>;
  rows: number;
  columns: number;
  share: boolean;
  names?: string[];
  heads?: string[];
  /** How large the matrix is of which this is a smaller picture, or some rows. */
  size?: string;
}

/** A strip or table with its name, the names of its rows, and its numbers: all of them where they fit, else how far they reach. */
function draw(one: Band, top: number): { drawn: string; high: number } {
  const { values, rows, columns, share, names, heads } = one;
  const row = rows === 1 ? 30 : Math.max(2, Math.min(18, 420 / rows));
  const high = row * rows;
  const left = names ? 37 + NAMES : 37;
  const wide = WIDE + 37 - left;
  const each = columns === 1 || (row >= 13 && wide / columns >= 34);
  const head = heads ? 54 : 0;
  const out = [
    label(34, top, one.name, one.kind),
    text(WIDE + 37, top, `${one.size ?? `${rows > 1 ? `${count(rows)} × ` : ''}${count(columns)}`}${each ? '' : ` · ${reach(values, share)}`}`, { 'text-anchor': 'end', 'font-size': 11, fill: colour('ink-2') }),
  ];
  const y = top + 6 + head;
  if (one.sign) out.push(text(14, y + 20, one.sign, { 'font-size': 18, fill: colour('ink-3') }));
  // One number a row is a bar's width of colour with the number beside it; a table has its numbers inside.
  const painted = columns === 1 ? 60 : wide;
  out.push(
    el('rect', { x: left - 3, y, width: 3, height: high, fill: colour(one.kind) }),
    el('image', { x: left, y, width: painted, height: high, preserveAspectRatio: 'none', href: picture(values, rows, columns, share ? 'share' : 'signed', painted, high, columns > 1 && each ? (value) => show(value, share) : undefined) }),
  );
  if (names && row >= 9) names.forEach((name, i) => out.push(text(left - 9, y + (i + 0.5) * row + 4, short(name), { 'text-anchor': 'end', 'font-size': Math.min(12, row), 'font-family': 'monospace', fill: colour('token') })));
  if (heads) heads.forEach((name, i) => out.push(text(0, 0, short(name, 8), { transform: `translate(${left + ((i + 0.5) * wide) / columns} ${y - 5}) rotate(-55)`, 'font-size': 11, 'font-family': 'monospace', fill: colour('token') })));
  if (columns === 1 && row >= 9) for (let i = 0; i < rows; i++) out.push(text(left + painted + 8, y + (i + 0.5) * row + 4, show(values[i]!, share), { 'font-size': Math.min(12, row) }));
  return { drawn: out.join(''), high: high + head + 36 };
}

/** The words of the vocabulary with their scores, and at the choice with their probabilities. */
function words(step: Step, view: View, part: (role: string) => Part, top: number): { drawn: string; high: number } {
  const chosen = step.operation === 'choose';
  const scores = part(chosen ? 'in' : 'out').values.map((row) => row[0]!);
  const shares = chosen ? part('out').values.map((row) => row[0]!) : null;
  const long = shares ?? scores.map((one) => one - Math.min(...scores) + 0.25 * (Math.max(...scores) - Math.min(...scores)));
  const out = [label(230, top, t('walk.v_score'))];
  if (shares) out.push(text(WIDE + 37, top, t('glossary.probability'), { 'text-anchor': 'end', 'font-size': 12, 'font-weight': 600 }));
  view.words.forEach((word, i) => {
    const y = top + 10 + i * 24;
    out.push(
      text(37, y + 14, short(visible(word), 20), { 'font-family': 'monospace', fill: colour('token') }),
      text(270, y + 14, number(scores[i]!, 4), { 'text-anchor': 'end' }),
      el('rect', { x: 290, y: y + 1, width: Math.max(1.5, (400 * long[i]!) / Math.max(...long)).toFixed(1), height: 16, rx: 2, fill: colour(shares ? 'ink' : 'residual') }),
    );
    if (shares) out.push(text(WIDE + 37, y + 14, percent(shares[i]!), { 'text-anchor': 'end', 'font-weight': 600 }));
  });
  return { drawn: out.join(''), high: 10 + view.words.length * 24 + 22 };
}

/** The whole machine: the choice on top, then block after block down to the token. */
function whole(map: ModelMap, view: View, token: Token, top: number): { drawn: string; high: number } {
  const strips = view.parts.filter((one) => one.axis === 'layer');
  const stream = strips[0]!;
  const chances = view.parts.find((one) => one.role === 'out');
  const { layers } = map;
  const groups = [...new Set(map.steps.filter((one) => one.block).map((one) => one.group))];
  const high = layers > 16 ? 12 : 20;
  const strip = (values: number[], x: number, y: number, wide: number, kind: string): string =>
    el('rect', { x: x - 3, y, width: 3, height: high, fill: colour(kind) }) +
    el('image', { x, y, width: wide, height: high, preserveAspectRatio: 'none', href: picture(values, 1, values.length, 'signed', wide, high) });
  const wide = (WIDE - 130 - 14 * (groups.length - 2)) / groups.length;
  const left = (i: number): number => 150 + i * (wide + 14);
  const edge = (group: string): string => ({ attention: 'attention', mlp: 'neuron' })[group] ?? 'residual';
  const out = [label(34, top, t('walk.s_choice'))];
  if (chances) view.words.slice(0, 4).forEach((word, i) => out.push(text(150 + i * 160, top, short(visible(word)), { 'font-family': 'monospace', fill: colour('token') }), text(150 + i * 160 + 144, top, percent(chances.values[i]![0]!), { 'text-anchor': 'end', 'font-weight': 600 })));
  let y = top + 26;
  groups.forEach((group, i) => out.push(label(left(i), y, groupName(group), edge(group))));
  y += 8;
  for (let layer = layers - 1; layer >= 0; layer--, y += high + 6)
    out.push(text(34, y + high / 2 + 4, t('walk.block', { n: layer }), { 'font-size': 12 }), ...groups.map((group, i) => strip(strips[i + 1]?.values[layer] ?? stream.values[layer + 1]!, left(i), y, wide, edge(group))));
  out.push(text(34, y + 12, t('walk.stack_entry'), { 'font-size': 12 }), text(150, y + 30, reach(stream.values.flat(), false), { 'font-size': 11, fill: colour('ink-2') }));
  out.push(strip(stream.values[0]!, left(groups.length - 1), y, wide, 'token'));
  y += 48;
  out.push(text(34, y, `${visible(token)} · ${t('walk.id')} ${count(token.id)} · ${t('walk.position')} ${view.position}`, { 'font-family': 'monospace', fill: colour('token') }));
  return { drawn: out.join(''), high: y - top + 24 };
}

export function stepPicture(map: ModelMap, step: Step, view: View, tokens: Token[], table: Table | null): string {
  const token = tokens[view.position]!;
  const part = (role: string): Part => view.parts.find((one) => one.role === role)!;
  const where = step.block ? ` · ${t('walk.block', { n: view.layer })}${attends(step) ? `, ${t('walk.head', { n: view.head })}` : ''}` : '';
  const title = `${nameOf(step)} · ${visible(token)}${where}`;
  const body = [text(16, 28, title, { 'font-weight': 650, 'font-size': 17 })];
  const said = t(sentence(step), { token: visible(token) }).replace(/\[\w+\|([^\]]+)\]/g, '$1');
  body.push(text(16, 50, short(said, 120), { 'font-size': 12, fill: colour('ink-2') }));
  let top = 82;
  const add = ({ drawn, high }: { drawn: string; high: number }): void => {
    body.push(drawn);
    top += high;
  };
  const tokenName = (position: number): string => (tokens[position] ? visible(tokens[position]!) : String(position));

  if (step.operation === 'token') {
    body.push(text(34, top, `${t('walk.id')} ${ids(token)} · ${t('walk.position')} ${view.position} · ${t('walk.bytes')} ${token.bytes}`, { 'font-family': 'monospace' }));
    top += 24;
  } else if (step.operation === 'stack') add(whole(map, view, token, top));
  else if (step.operation === 'choose') add(words(step, view, part, top));
  else {
    if (table) {
      const named = table.rows <= MANY ? tokens.map(visible) : undefined;
      add(draw({ name: `${called(map, step, part('out')).label} · ${t('walk.head', { n: view.head })}`, kind: 'attention', values: table.values, rows: table.rows, columns: table.columns, share: isShare(map, part('out')), names: named, heads: named }, top));
    }
    for (const { part: one, label: name, kind, sign, flat, share } of drawn(map, step, view)) {
      if (one.axis === 'id') continue;
      const rows = flat ? 1 : one.rows.length;
      const names =
        rows === 1 && one.columns > 1 ? undefined
        : one.axis === 'head' ? one.rows.map((row) => t('walk.head', { n: row }))
        : one.role === 'matrix' ? one.rows.map((row, i) => (view.words[i] ? `${visible(view.words[i]!)} ${row}` : String(row)))
        : one.axis === 'position' ? one.rows.map(tokenName)
        : undefined;
      add(draw({ name, kind, sign, values: one.values.flat(), rows, columns: flat ? one.columns * one.rows.length : one.columns, share, names, size: (one.role === 'weights' && one.axis === 'weight') || one.role === 'matrix' ? view.shape.map((size) => count(size)).join(' × ') : undefined }, top));
    }
    if (step.operation === 'rank') add(words(step, view, part, top));
  }
  return sheet(WIDE + 60, top, title, ...body);
}
