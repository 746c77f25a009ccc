/** The translations side by side as SVG: who wrote what, with the words that others have as well underlined. */

import { number, short } from '../../lib/format';
import { wide } from '../../lib/measure';
import { colour, el, picture, text } from '../../lib/svg';
import type { Entry } from '../../lib/views';
import { t } from '../../state/preferences.svelte';
import { called, kindName, type Translator } from './contest';

export function contestPicture(written: { model: Translator; entry: Entry }[], shared: Map<string, number>, source: string): string {
  const body = [text(16, 28, source, { 'font-weight': 600 })];
  let [y, most] = [62, 420];
  for (const { model, entry } of written) {
    body.push(text(16, y, `${called(model.name)}: ${kindName(model.kind)}`, { 'font-size': 12, fill: colour('ink-2') }));
    let x = 16;
    for (const word of entry.words) {
      const [width, others] = [wide(word.text, 15), (shared.get(word.name) ?? 1) - 1];
      body.push(text(x, y + 24, word.text, { 'font-family': 'monospace', 'font-size': 15 }));
      if (others) body.push(el('path', { d: `M${x} ${y + 30}h${width.toFixed(1)}`, stroke: colour(others === written.length - 1 ? 'accent' : 'line-strong'), 'stroke-width': 2, 'stroke-dasharray': others === written.length - 1 ? undefined : '2 2' }));
      x += width + 9;
    }
    body.push(text(16, y + 48, `${t('contest.weights', { n: short(entry.weights) })}; ${t('contest.per_word')} ${number(entry.per_word)}`, { 'font-size': 12, fill: colour('ink-2') }));
    most = Math.max(most, x + 16);
    y += 84;
  }
  return picture(most, y - 20, t('contest.title'), ...body);
}
