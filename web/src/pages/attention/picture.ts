/** The page's pictures as SVG, drawn from the numbers. */

import { fromBase64, type Table } from '../../lib/binary';
import { css, largest, shareStep, signedStep } from '../../lib/colour';
import { foldTable } from '../../lib/fold';
import { el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { palette } from '../../state/palette.svelte';
import { t } from '../../state/preferences.svelte';
import type { Head } from './kinds';

/** A small raster as an image inside the drawing: a thousand tokens would be a million rectangles. */
function raster(columns: number, rows: number, colourOf: (index: number) => number): string {
  const canvas = document.createElement('canvas');
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(columns, rows);
  const out = new Uint32Array(image.data.buffer);
  for (let i = 0; i < out.length; i++) out[i] = colourOf(i);
  context.putImageData(image, 0, 0);
  return canvas.toDataURL('image/png');
}

export function headPicture(table: Table, tokens: Token[], stage: string, name: string): string {
  const side = 640;
  const labelled = table.rows <= 64;
  const cell = side / table.rows;
  const most = largest(table.values);
  const colourOf = (value: number): number =>
    value < -1e4 ? palette.masked : stage === 'weights' ? palette.share[shareStep(value, most)]! : palette.signed[signedStep(value, most)]!;
  const left = labelled ? 110 : 24;
  const top = labelled ? 110 : 48;
  const body: string[] = [];
  if (labelled) {
    for (let i = 0; i < table.values.length; i++) {
      const [r, c] = [Math.floor(i / table.columns), i % table.columns];
      body.push(el('rect', { x: left + c * cell, y: top + r * cell, width: cell + 0.3, height: cell + 0.3, fill: css(colourOf(table.values[i]!)) }));
    }
    tokens.forEach((token, i) => {
      const size = Math.min(12, cell);
      body.push(text(left - 6, top + (i + 0.7) * cell, visible(token), { 'text-anchor': 'end', 'font-size': size, 'font-family': 'monospace' }));
      body.push(text(0, 0, visible(token), { transform: `translate(${left + (i + 0.6) * cell} ${top - 6}) rotate(-60)`, 'font-size': size, 'font-family': 'monospace' }));
    });
  } else {
    const folded = foldTable(table.values, table.rows, table.columns, { row: 0, column: 0, size: table.rows }, side * 2);
    body.push(el('image', { x: left, y: top, width: side, height: side, href: raster(folded.columns, folded.rows, (i) => colourOf(folded.values[i]!)) }));
  }
  return picture(left + side + 24, top + side + 24, name, text(16, 24, `${name} · ${t(`attention.stage_${stage}`)}`, { 'font-weight': 600 }), ...body);
}

export function glancePicture(heads: Head[]): string {
  const tile = 44;
  const across = Math.max(...heads.map((one) => one.head)) + 1;
  const down = Math.max(...heads.map((one) => one.layer)) + 1;
  const body = heads.flatMap((one) => {
    const values = fromBase64(one.pixels);
    const size = Math.round(Math.sqrt(values.length));
    const href = raster(size, size, (i) => palette.share[shareStep(values[i]! / 255)]!);
    return el('image', { x: 40 + one.head * (tile + 4), y: 40 + one.layer * (tile + 4), width: tile, height: tile, href, style: 'image-rendering:pixelated' });
  });
  const names = Array.from({ length: down }, (_, i) => text(32, 40 + i * (tile + 4) + tile / 2 + 4, String(i), { 'text-anchor': 'end' }));
  return picture(56 + across * (tile + 4), 56 + down * (tile + 4), t('attention.glance'), text(16, 24, t('attention.glance'), { 'font-weight': 600 }), ...names, ...body);
}
