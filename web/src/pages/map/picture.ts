/** The grid of a sweep as SVG. */

import { number } from '../../lib/format';
import { colour, el, picture, text } from '../../lib/svg';
import type { Sweep } from '../../lib/views';
import { t } from '../../state/preferences.svelte';
import { moved } from './sweep.svelte';

export function mapPicture(rows: Record<number, Sweep>, layers: number[], names: string[], first: Sweep): string {
  const [wide, high, left, top] = [54, 22, 110, 76];
  const most = Math.max(1e-9, ...Object.values(rows).flatMap((row) => row.units.map((_, at) => Math.abs(moved(row, at)))));
  const body = [text(16, 26, t('map.title'), { 'font-weight': 600 }), text(16, 46, first.metric, { 'font-size': 12, fill: colour('ink-2') })];
  names.forEach((name, at) => body.push(text(left + at * wide + 4, top - 8, [...name].slice(0, 7).join(''), { 'font-family': 'monospace', 'font-size': 11 })));
  layers.forEach((layer, r) => {
    body.push(text(left - 8, top + r * high + 15, t('map.layer', { n: layer }), { 'text-anchor': 'end', 'font-size': 11 }));
    const row = rows[layer];
    names.forEach((_, at) => {
      if (!row) return;
      const value = moved(row, at);
      body.push(
        el('rect', { x: left + at * wide, y: top + r * high, width: wide - 2, height: high - 2, rx: 2, fill: colour(value < 0 ? 'below' : 'attention'), opacity: ((0.6 * Math.abs(value)) / most).toFixed(3) }),
        text(left + (at + 1) * wide - 8, top + r * high + 15, number(value, 2), { 'text-anchor': 'end', 'font-size': 10 }),
      );
    });
  });
  return picture(Math.max(480, left + names.length * wide + 16), top + layers.length * high + 16, t('map.title'), ...body);
}
