/** The cosines of the layers and the neighbours as SVG. */

import { colour, el, picture, text } from '../../lib/svg';
import type { Senses } from '../../lib/views';
import { t } from '../../state/preferences.svelte';
import { cosine, layerName, share, SIDES } from './senses';

export function sensesPicture(found: Senses): string {
  const [left, wide, high] = [190, 260, 24];
  const body = [text(16, 28, t('senses.alike', { word: found.word }), { 'font-weight': 600 })];
  found.layers.forEach((name, i) => {
    const y = 46 + i * high;
    body.push(
      text(left - 10, y + 13, layerName(name), { 'text-anchor': 'end', 'font-size': 12 }),
      el('rect', { x: left, y: y + 3, width: wide * share(found.cosines[i]!), height: 12, rx: 3, fill: colour('attention') }),
      text(left + wide + 10, y + 13, cosine(found.cosines[i]!), { 'font-size': 12 }),
    );
  });
  let y = 70 + found.layers.length * high;
  const lists = [...found.neighbours.map((near, i) => [t(`senses.in_${SIDES[i]!}`, { word: found.word }), near.map((one) => [one.cosine, one.before + one.word + one.after] as const)] as const)];
  lists.push([t('senses.in_none', { word: found.word }), found.static_neighbours.map((one) => [one.cosine, one.word] as const)]);
  for (const [name, near] of lists) {
    body.push(text(16, y, name, { 'font-weight': 600 }));
    near.forEach(([near, says], i) => body.push(text(16, y + 20 + i * 19, `${cosine(near)}  ${says}`, { 'font-size': 12 })));
    y += 44 + near.length * 19;
  }
  return picture(640, y, t('senses.title'), ...body);
}
