/** The page's pictures as SVG, drawn from the numbers. */

import { fromBase64, type Table } from '../../lib/binary';
import { byRow, css, largest, shareStep, signedStep } from '../../lib/colour';
import { foldTable } from '../../lib/fold';
import { number } from '../../lib/format';
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

export function headPicture(table: Table, tokens: Token[], stage: string, name: string, rowByRow: boolean): string {
  const side = 640;
  const drawn = table.rows <= 64;
  const cell = side / table.rows;
  const values = rowByRow ? byRow(table.values, table.columns) : table.values;
  const most = largest(values);
  const colourOf = (value: number): number =>
    value < -1e4 ? palette.masked : stage === 'weights' ? palette.share[shareStep(value, most)]! : palette.signed[signedStep(value, most)]!;
  const left = 110;
  const top = 110;
  const body: string[] = [];
  const stride = Math.ceil(10 / cell);
  tokens.forEach((token, i) => {
    if (i % stride) return;
    const size = Math.min(12, cell * stride);
    const said = stride > 1 ? `${i} ${visible(token)}` : visible(token);
    body.push(text(left - 6, top + (i + 0.5) * cell + size / 3, said, { 'text-anchor': 'end', 'font-size': size, 'font-family': 'monospace' }));
    body.push(text(0, 0, said, { transform: `translate(${left + (i + 0.5) * cell + size / 3} ${top - 6}) rotate(-60)`, 'font-size': size, 'font-family': 'monospace' }));
  });
  if (drawn) {
    for (let i = 0; i < values.length; i++) {
      const [r, c] = [Math.floor(i / table.columns), i % table.columns];
      body.push(el('rect', { x: left + c * cell, y: top + r * cell, width: cell + 0.3, height: cell + 0.3, fill: css(colourOf(values[i]!)) }));
    }
  } else {
    const folded = foldTable(values, table.rows, table.columns, { row: 0, column: 0, size: table.rows }, side * 2);
    body.push(el('image', { x: left, y: top, width: side, height: side, href: raster(folded.columns, folded.rows, (i) => colourOf(folded.values[i]!)) }));
  }
  const scale = `${t('attention.tint')}: ${rowByRow ? t('attention.tint_row') : number(most)}`;
  body.push(text(left, top + side + 20, scale, { 'font-size': 12 }));
  return picture(left + side + 24, top + side + 32, name, text(16, 24, `${name} · ${t(`attention.stage_${stage}`)}`, { 'font-weight': 600 }), ...body);
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
