/** The lines of attention as SVG: every row with its strongest line, drawn from the numbers. */

import { wide } from '../../lib/measure';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { t } from '../../state/preferences.svelte';
import { colourOf } from './pair.svelte';

export function linesPicture(queries: Token[], keys: Token[], weights: number[][][], heads: number[], name: string): string {
  const [row, top, left] = [24, 62, 24 + Math.max(60, ...queries.map((one) => wide(visible(one), 12)))];
  const right = left + 220;
  const y = (at: number): number => top + (at + 0.5) * row;
  const body = [text(16, 26, t('translator.attention'), { 'font-weight': 600 }), text(16, 44, name, { 'font-size': 12, fill: colour('ink-2') })];
  const mono = { 'font-family': 'monospace', 'font-size': 12, fill: colour('token') };
  queries.forEach((token, q) => body.push(text(left - 8, y(q) + 4, visible(token), { 'text-anchor': 'end', ...mono })));
  keys.forEach((token, k) => body.push(text(right + 8, y(k) + 4, visible(token), mono)));
  for (const head of heads)
    queries.forEach((_, q) =>
      weights[head]?.[q]?.forEach((share, k) => {
        if (share > 0.05)
          body.push(el('path', { d: `M${left} ${y(q)}C${left + 110} ${y(q)} ${left + 110} ${y(k)} ${right} ${y(k)}`, fill: 'none', stroke: colour(colourOf(head).slice(6, -1)), 'stroke-width': (0.5 + 4 * share).toFixed(1), opacity: (0.2 + 0.8 * share).toFixed(2) }));
      }),
    );
  return picture(right + 40 + Math.max(60, ...keys.map((one) => wide(visible(one), 12))), y(Math.max(queries.length, keys.length)) + 10, t('translator.attention'), ...body);
}
