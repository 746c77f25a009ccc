/** The attention between source and answer as SVG. */

import { css, largest, shareStep } from '../../lib/colour';
import { percent } from '../../lib/format';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { palette } from '../../state/palette.svelte';
import { t } from '../../state/preferences.svelte';
import type { Answer, Between } from './tasks';

export function taskPicture(found: Answer, seen: Between, rows: Token[], name: string): string {
  const columns = found.source.map((at) => found.tokens[at]!);
  const cell = columns.length > 40 ? 14 : 24;
  const [left, top] = [120, 130];
  const most = largest(seen.weights.flat());
  const body = [text(16, 26, t('tasks.title'), { 'font-weight': 600 }), text(16, 44, name, { 'font-size': 12, fill: colour('ink-2') })];
  columns.forEach((token, c) =>
    body.push(text(0, 0, visible(token), { transform: `translate(${left + (c + 0.6) * cell} ${top - 6}) rotate(-60)`, 'font-family': 'monospace', 'font-size': 11, fill: colour('token') })),
  );
  seen.weights.forEach((row, r) => {
    body.push(text(left - 8, top + (r + 0.65) * cell, rows[r] ? visible(rows[r]!) : found.label, { 'text-anchor': 'end', 'font-family': 'monospace', 'font-size': 11, fill: colour('token') }));
    row.forEach((share, c) => body.push(el('rect', { x: left + c * cell, y: top + r * cell, width: cell - 1, height: cell - 1, fill: css(palette.share[shareStep(share, most)]!) })));
  });
  let y = top + seen.weights.length * cell + 28;
  for (const [label, chance] of found.probabilities) {
    body.push(text(16, y, label), el('rect', { x: left, y: y - 12, width: (200 * chance).toFixed(1), height: 14, fill: colour('ink') }), text(left + 260, y, percent(chance), { 'text-anchor': 'end' }));
    y += 22;
  }
  return picture(Math.max(420, left + columns.length * cell + 90), y + 6, t('tasks.title'), ...body);
}
