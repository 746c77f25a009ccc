/** The matrix chosen as SVG: its heat picture and the spread of its weights. */

import { count, number } from '../../lib/format';
import { css, largest, signedStep } from '../../lib/colour';
import { colour, el, picture, text } from '../../lib/svg';
import { palette } from '../../state/palette.svelte';
import type { Seen } from './weights';

export function matrixPicture(seen: Seen, values: number[][]): string {
  const { picture: found, distribution: spread } = seen;
  const cell = 480 / Math.max(found.columns, found.rows);
  const most = largest(values.flat());
  const body = [text(16, 26, `${found.name}  ${found.shape.map((one) => count(one)).join(' × ')}`, { 'font-weight': 600, 'font-family': 'monospace' })];
  values.forEach((row, r) =>
    row.forEach((value, c) => body.push(el('rect', { x: 16 + c * cell, y: 44 + r * cell, width: cell + 0.2, height: cell + 0.2, fill: css(palette.signed[signedStep(value, most)]!) }))),
  );
  const top = 44 + values.length * cell + 24;
  const tallest = Math.max(1, ...spread.counts);
  const step = 480 / spread.counts.length;
  spread.counts.forEach((n, i) => body.push(el('rect', { x: 16 + i * step, y: top + 100 - (100 * n) / tallest, width: Math.max(0.5, step - 1), height: ((100 * n) / tallest).toFixed(2), fill: colour('ink-3') })));
  body.push(text(16, top + 118, number(spread.edges[0]!), { 'font-size': 11 }), text(496, top + 118, number(spread.edges.at(-1)!), { 'font-size': 11, 'text-anchor': 'end' }));
  return picture(512, top + 134, found.name, ...body);
}
