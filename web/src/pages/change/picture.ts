/** Before and after as SVG: the two lists side by side, and the effect on each token below. */

import { number, percent } from '../../lib/format';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { t } from '../../state/preferences.svelte';
import type { Candidate, Changed } from '../../lib/views';
import { changes, words } from './changes.svelte';

const short = (name: string, most = 14): string => ([...name].length > most ? `${[...name].slice(0, most - 1).join('')}…` : name);

export function changePicture(found: Changed, tokens: Token[], positions: number[]): string {
  const body: string[] = [text(16, 26, t('change.title'), { 'font-weight': 600 })];
  let y = 48;
  for (const one of changes.list.filter((change) => !change.off)) {
    body.push(text(16, y, `· ${words(one)}`, { 'font-size': 12, fill: colour('ink-2') }));
    y += 18;
  }
  const longest = Math.max(1e-9, ...[...found.before, ...found.after].map((one) => one.probability));
  const bars = (list: Candidate[], x: number, title: string): void => {
    body.push(text(x, y + 14, title, { 'font-weight': 600 }));
    list.forEach((one, i) => {
      const top = y + 24 + i * 22;
      body.push(
        text(x, top + 13, short(visible(one.token)), { 'font-family': 'monospace', fill: colour('token') }),
        el('rect', { x: x + 120, y: top, width: ((150 * one.probability) / longest).toFixed(1), height: 16, rx: 2, fill: colour('ink') }),
        text(x + 340, top + 13, percent(one.probability), { 'text-anchor': 'end' }),
      );
    });
  };
  bars(found.before, 16, t('change.before'));
  bars(found.after, 396, t('change.after'));
  y += 24 + Math.max(found.before.length, found.after.length) * 22 + 30;
  const [wide, high, left] = [54, 20, 110];
  const rows = found.stream.length;
  const most = Math.max(1e-9, ...found.stream.flat());
  const mostKl = Math.max(1e-9, ...found.kl);
  body.push(text(16, y, t('change.effect'), { 'font-weight': 600 }), text(left - 8, y + 62, t('change.prediction'), { 'text-anchor': 'end', 'font-size': 11 }));
  positions.forEach((position, c) => {
    const x = left + c * wide;
    const tall = (34 * found.kl[position]!) / mostKl;
    body.push(
      text(x + 4, y + 18, short(visible(tokens[position]!), 7), { 'font-family': 'monospace', 'font-size': 11, fill: colour('token') }),
      el('rect', { x: x + 8, y: y + 58 - tall, width: 14, height: tall.toFixed(1), fill: colour('ink-3') }),
      text(x + wide - 6, y + 62, number(found.kl[position]!, 2), { 'text-anchor': 'end', 'font-size': 10 }),
    );
    for (let layer = 0; layer < rows; layer++) {
      const top = y + 70 + (rows - 1 - layer) * high;
      const value = found.stream[layer]![position]!;
      body.push(
        el('rect', { x, y: top, width: wide - 2, height: high - 2, rx: 2, fill: colour('residual'), opacity: (0.42 * Math.min(1, value / most)).toFixed(3) }),
        text(x + wide - 6, top + 13, value ? number(value, 2) : '·', { 'text-anchor': 'end', 'font-size': 10 }),
      );
    }
  });
  for (let layer = 0; layer < rows; layer++) body.push(text(left - 8, y + 84 + (rows - 1 - layer) * high, t('change.layer', { n: layer }), { 'text-anchor': 'end', 'font-size': 11 }));
  return picture(Math.max(760, left + positions.length * wide + 16), y + 70 + rows * high + 16, t('change.title'), ...body);
}
