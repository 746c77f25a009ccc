/** The page's pictures as SVG. */

import { count, percent } from '../../lib/format';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { t } from '../../state/preferences.svelte';
import type { Lens } from '../../lib/views';
import { rankShare, rowName } from './lens';

export function tablePicture(lens: Lens, tokens: Token[], mode: 'words' | 'rank'): string {
  const [wide, high, left, top] = [92, 26, 96, 70];
  const down = lens.layers.length;
  const short = (name: string): string => ([...name].length > 11 ? `${[...name].slice(0, 10).join('')}…` : name);
  const body: string[] = [];
  lens.positions.forEach((position, c) => {
    const x = left + c * wide;
    body.push(text(x + 4, top - 8, short(tokens[position] ? visible(tokens[position]!) : String(position)), { 'font-family': 'monospace', fill: colour('token') }));
    for (let r = 0; r < down; r++) {
      const y = top + (down - 1 - r) * high;
      const [id, probability] = lens.top[r]![c]![0]!;
      const share = mode === 'words' ? probability : rankShare(lens.rank[r]![c]!);
      body.push(
        el('rect', { x, y, width: wide - 2, height: high - 2, rx: 3, fill: colour('token-soft-2'), opacity: Math.max(0.08, share).toFixed(3) }),
        el('rect', { x, y: y + high - 5, width: ((wide - 2) * share).toFixed(1), height: 3, fill: colour('ink') }),
        text(x + 4, y + 15, short(mode === 'words' ? visible(lens.words[String(id)]!) : count(lens.rank[r]![c]!)), { 'font-family': 'monospace', 'font-size': 12, 'font-weight': id === lens.chosen[c]!.id ? 700 : 400 }),
      );
    }
  });
  for (let r = 0; r < down; r++) body.push(text(left - 8, top + (down - 1 - r) * high + 16, rowName(lens.layers[r]!), { 'text-anchor': 'end' }));
  return picture(left + lens.positions.length * wide + 16, top + down * high + 16, t('layers.title'), text(16, 26, t('layers.title'), { 'font-weight': 600 }), ...body);
}

interface Chart {
  lines: { i: number; name: string; rank: number[]; probability: number[] }[];
  lens: Lens;
  wide: number;
  high: number;
  x: (i: number) => number;
  y: (value: number) => number;
  ticks: number[];
  show: (value: number) => string;
  measure: 'rank' | 'probability';
}

export function chartPicture({ lines, lens, wide, high, x, y, ticks, show, measure }: Chart): string {
  const ink = (i: number): string => colour(i ? 'key' : 'query');
  return picture(
    wide,
    high + 30,
    t('layers.watch'),
    text(16, 20, t('layers.watch'), { 'font-weight': 600 }),
    el(
      'g',
      { transform: 'translate(0 28)' },
      ...ticks.map((tick) => el('line', { x1: 54, x2: wide - 90, y1: y(tick), y2: y(tick), stroke: colour('line') }) + text(46, y(tick) + 4, show(tick), { 'text-anchor': 'end', 'font-size': 11 })),
      ...lens.layers.map((_, i) => text(x(i), high - 8, i === 0 ? t('layers.start') : String(i - 1), { 'text-anchor': 'middle', 'font-size': 11 })),
      ...lines.map(
        (line) =>
          el('polyline', { points: line[measure].map((value, i) => `${x(i)},${y(value)}`).join(' '), fill: 'none', stroke: ink(line.i), 'stroke-width': 2, 'stroke-dasharray': line.i ? '6 3' : undefined }) +
          line[measure].map((value, i) => el('circle', { cx: x(i), cy: y(value), r: 4, fill: ink(line.i) }, el('title', {}, measure === 'rank' ? count(value) : percent(value)))).join('') +
          text(wide - 80, y(line[measure].at(-1)!) + 4, line.name, { 'font-weight': 600, fill: ink(line.i), 'font-family': 'monospace' }),
      ),
    ),
  );
}
