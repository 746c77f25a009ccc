/** The page's pictures as SVG, drawn from the numbers. */

import { fromBase64, type Table } from '../../lib/binary';
import { byRow, css, largest, shareStep, signedStep } from '../../lib/colour';
import { foldTable } from '../../lib/fold';
import { number, percent } from '../../lib/format';
import { wide as measure } from '../../lib/measure';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import { palette } from '../../state/palette.svelte';
import { t } from '../../state/preferences.svelte';
import { KINDS, type Head } from './kinds';

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

const FAINT = 0.02; // weights below which a line is drawn for the chosen token only

/** The head as lines between the words, as wide as their weight; those of the chosen token are strong, with their shares. */
export function linesPicture(weights: Float32Array, tokens: Token[], chosen: number, upright: boolean, name: string): string {
  const names = tokens.map(visible);
  const [left, top] = [24, 76];
  const widest = Math.min(180, Math.max(60, ...names.map((one) => measure(one, 12.5) + 14)));
  /** Where each token begins along the words, and at the end where the last one ends. */
  const places = [0];
  for (const one of names) places.push(places.at(-1)! + (upright ? 23 : Math.max(30, measure(one, 12.5) + 14)));
  const long = places.at(-1)!;
  const across = upright ? 2 * widest + 300 : 300;
  const middle = (i: number): number => (places[i]! + places[i + 1]!) / 2;
  const [start, end] = upright ? [left + widest + 4, left + across - widest - 4] : [top + 34, top + across - 34];
  const bend = (end - start) / 2;
  const stroke = (i: number, j: number, weight: number, strong: boolean): string => {
    const [a, b] = [middle(i) + (upright ? top : left), middle(j) + (upright ? top : left)];
    const d = upright ? `M${start} ${a}C${start + bend} ${a} ${end - bend} ${b} ${end} ${b}` : `M${a} ${start}C${a} ${start + bend} ${b} ${end - bend} ${b} ${end}`;
    return el('path', { d, fill: 'none', stroke: colour('attention'), 'stroke-width': (strong ? 0.75 + 5 * weight : 0.5 + 2 * weight).toFixed(2), 'stroke-opacity': (strong ? 0.25 + 0.75 * weight : 0.25 * weight).toFixed(3) });
  };
  const body: string[] = [];
  for (const strong of [false, true])
    for (let i = 0; i < tokens.length; i++)
      for (let j = 0; j <= i; j++) {
        const weight = weights[i * tokens.length + j]!;
        if ((i === chosen) === strong && weight >= (strong ? 0.002 : FAINT)) body.push(stroke(i, j, weight, strong));
      }
  names.forEach((one, i) => {
    for (const from of [true, false]) {
      const weight = from || i > chosen ? 0 : weights[chosen * tokens.length + i]!;
      const own = from && i === chosen;
      const [x, y] = upright ? [from ? left : left + across - widest, top + places[i]!] : [left + places[i]!, from ? top + 6 : top + across - 30];
      const [w, h] = upright ? [widest, 23] : [places[i + 1]! - places[i]!, 24];
      if (own || weight > 0.005) body.push(el('rect', { x: x + 1, y: y + 1, width: w - 2, height: h - 2, rx: 5, fill: colour(own ? 'token' : 'share-1'), opacity: own ? 1 : Math.min(1, 0.1 + 0.9 * weight).toFixed(3) }));
      const anchor = upright ? (from ? 'end' : 'start') : 'middle';
      body.push(text(upright ? (from ? x + w - 8 : x + 8) : x + w / 2, y + h / 2 + 4.5, one, { 'text-anchor': anchor, 'font-size': 12.5, 'font-family': 'monospace', fill: colour(own ? 'paper' : weight > 0.005 ? 'ink' : 'ink-2') }));
      if (weight > 0.005) body.push(text(upright ? x + w + 8 : x + w / 2, upright ? y + h / 2 + 4.5 : y + h + 14, percent(weight), { 'text-anchor': upright ? 'start' : 'middle', 'font-size': 11, fill: colour('ink-2') }));
    }
  });
  const titles = upright
    ? [text(left, top - 12, t('attention.looks'), { 'font-size': 12, fill: colour('ink-2') }), text(left + across, top - 12, t('attention.looked_at'), { 'text-anchor': 'end', 'font-size': 12, fill: colour('ink-2') })]
    : [text(left, top - 6, `↑ ${t('attention.looks')}`, { 'font-size': 12, fill: colour('ink-2') }), text(left, top + across + 34, `↓ ${t('attention.looked_at')}`, { 'font-size': 12, fill: colour('ink-2') })];
  const [wide, high] = upright ? [across, long] : [long, across + 40];
  return picture(Math.max(360, left + wide + 70), top + high + 20, name, text(16, 26, `${name} · ${t('attention.lines')}`, { 'font-weight': 600 }), ...titles, ...body);
}

/** All heads, a row a layer or a row a kind, as they are sorted on the page. */
export function glancePicture(heads: Head[], sort: string): string {
  const [tile, most] = [44, 16];
  const kinds = sort === 'kind';
  const groups = kinds
    ? KINDS.map((kind) => ({ name: t(`attention.kind_${kind}`), heads: heads.filter((one) => one.kind === kind) })).filter((group) => group.heads.length)
    : [...new Set(heads.map((one) => one.layer))].map((layer) => ({ name: String(layer), heads: heads.filter((one) => one.layer === layer) }));
  const across = Math.max(...groups.map((group) => (kinds ? Math.min(most, group.heads.length) : group.heads.length)));
  const body: string[] = [];
  let y = 40;
  for (const group of groups) {
    if (kinds) body.push(text(40, (y += 18) - 6, group.name, { 'font-weight': 600, 'font-size': 12 }));
    else body.push(text(32, y + tile / 2 + 4, group.name, { 'text-anchor': 'end' }));
    group.heads.forEach((one, i) => {
      const values = fromBase64(one.pixels);
      const size = Math.round(Math.sqrt(values.length));
      const href = raster(size, size, (at) => palette.share[shareStep(values[at]! / 255)]!);
      const [x, top] = [40 + (i % across) * (tile + 4), y + Math.floor(i / across) * (tile + (kinds ? 18 : 4))];
      body.push(el('image', { x, y: top, width: tile, height: tile, href, style: 'image-rendering:pixelated' }));
      if (kinds) body.push(text(x + tile / 2, top + tile + 11, `${one.layer}.${one.head}`, { 'text-anchor': 'middle', 'font-size': 10, fill: colour('ink-2') }));
    });
    y += Math.ceil(group.heads.length / across) * (tile + (kinds ? 18 : 4)) + (kinds ? 6 : 0);
  }
  return picture(Math.max(300, 56 + across * (tile + 4)), y + 16, t('attention.glance'), text(16, 24, t('attention.glance'), { 'font-weight': 600 }), ...body);
}
