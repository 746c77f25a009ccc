/** The page's pictures as SVG. */

import { largest, scale } from '../../lib/colour';
import type { Table } from '../../lib/binary';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { t } from '../../state/preferences.svelte';
import { area, fold, type Part } from './neurons';

/** A layer's activations as an image inside the drawing: they are too many for rectangles. */
export function fieldPicture(table: Table, tokens: Token[], layer: number): string {
  const wide = Math.min(table.columns, 1400);
  const high = Math.min(table.rows, 1000);
  const row = Math.max(1, Math.min(16, 600 / table.rows));
  const folded = fold(table.values, table.rows, table.columns, high, wide);
  const most = largest(table.values) || 1;
  const colours = scale([colour('paper'), colour('neuron-soft'), colour('neuron')]);
  const canvas = document.createElement('canvas');
  canvas.width = wide;
  canvas.height = high;
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(wide, high);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++) pixels[i] = colours[Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, folded[i]! / most))))]!;
  context.putImageData(image, 0, 0);
  const title = t('neurons.layer', { n: layer });
  return picture(
    860,
    60 + table.rows * row,
    title,
    text(16, 26, title, { 'font-weight': 600 }),
    el('image', { x: 100, y: 44, width: 744, height: table.rows * row, preserveAspectRatio: 'none', href: canvas.toDataURL('image/png'), style: 'image-rendering:pixelated' }),
    ...(row >= 9 ? tokens.map((token, i) => text(92, 44 + (i + 0.75) * row, visible(token), { 'text-anchor': 'end', 'font-size': Math.min(12, row), 'font-family': 'monospace' })) : []),
  );
}

export function partsPicture(parts: Part[], tokens: Token[], title: string): string {
  const high = 46;
  const named = tokens.length <= 40;
  const body = parts.map((part, i) =>
    el(
      'g',
      { transform: `translate(0 ${44 + i * high})` },
      text(16, 24, part.name, { 'font-weight': 600 }),
      text(120, 24, part.size, { 'font-size': 12, fill: colour('ink-2') }),
      el('g', { transform: 'translate(220 0)' }, el('path', { d: area(part.line, 620, 36), fill: colour('neuron') }), el('line', { x1: 0, x2: 620, y1: 36, y2: 36, stroke: colour('line-strong') })),
    ),
  );
  const foot = 44 + parts.length * high;
  const words = named ? tokens.map((token, i) => text(0, 0, visible(token), { transform: `translate(${220 + ((i + 0.4) * 620) / tokens.length} ${foot + 8}) rotate(55)`, 'font-size': 11, 'font-family': 'monospace' })) : [];
  return picture(870, foot + (named ? 80 : 20), title, text(16, 26, title, { 'font-weight': 600 }), ...body, ...words);
}
