/** The text with its shares as SVG, one block a method. */

import { css } from '../../lib/colour';
import { percent } from '../../lib/format';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { palette } from '../../state/palette.svelte';
import { t } from '../../state/preferences.svelte';
import type { Saliency } from '../../lib/views';
import { withSign } from './causes';

export function causesPicture(found: Saliency[], tokens: Token[]): string {
  const [wide, high] = [800, 46];
  const body: string[] = [text(16, 28, t('causes.title'), { 'font-weight': 600 })];
  let y = 46;
  for (const one of found) {
    const goal = one.targets[0]!;
    const most = Math.max(1e-9, ...one.share[0]!);
    body.push(text(16, y + 14, t(`causes.method_${one.method}`), { 'font-size': 12, fill: colour('ink-2') }));
    y += 26;
    let x = 16;
    for (const [i, token] of [...tokens.slice(0, goal.position), goal.token].entries()) {
      const name = visible(token);
      const width = Math.max(42, [...name].length * 8.6 + 12);
      if (x + width > wide - 16) {
        x = 16;
        y += high;
      }
      const last = i === goal.position;
      const strength = last ? 0 : Math.sqrt(one.share[0]![i]! / most);
      const against = !last && one.signed[0]![i]! < 0;
      const ink = colour(last ? 'paper' : 'ink');
      body.push(
        el('rect', { x, y, width, height: high - 6, rx: 5, fill: last ? colour('token') : css(against ? palette.signed[128 - Math.round(64 * strength)]! : palette.share[Math.round(127 * strength)]!) }),
        text(x + width / 2, y + 17, name, { 'text-anchor': 'middle', 'font-family': 'monospace', fill: ink }),
        last ? '' : el('rect', { x: x + 4, y: y + 20, width: (((width - 8) * one.share[0]![i]!) / most).toFixed(1), height: 3, rx: 1.5, fill: colour(against ? 'below' : 'attention') }),
        text(x + width / 2, y + 35, last ? '▲' : withSign(percent(one.share[0]![i]!), one.signed[0]![i]!), { 'text-anchor': 'middle', 'font-size': 11, fill: ink }),
      );
      x += width + 4;
    }
    y += high + 14;
  }
  return picture(wide, y + 10, t('causes.title'), ...body);
}
