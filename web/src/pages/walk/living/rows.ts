/** A row of the machine up close: the vectors of every token at one step, tables of who looks at whom, a matrix, numbers in cells. */

import { shareStep, signedStep, css } from '../../../lib/colour';
import { number, percent, wholePercent } from '../../../lib/format';
import { thing } from '../../../state/map';
import { palette } from '../../../state/palette.svelte';
import { MASKED } from '../paint';
import { fit, inkOf, ramp, type Ink } from './ink';
import { halfOf, isAcross, isHeads, isTable, lane, type Station } from './layout';
import { summary } from './machine';
import type { Scene } from './scene';
import type { Strips } from './strips';
import { row as strong, share, together } from './summary';

export const half = (s: Scene, name: string): number => halfOf(s.map, name);

/** Colours as a canvas takes them, each made once. */
let written: { scale: Uint32Array; css: string[] }[] = [];
function colour(scale: Uint32Array, step: number): string {
  let table = written.find((one) => one.scale === scale);
  if (!table) written = [...written.slice(-3), (table = { scale, css: Array.from(scale, css) })];
  return table.css[step]!;
}
const bright = (packed: number): boolean => 0.3 * (packed & 255) + 0.59 * ((packed >> 8) & 255) + 0.11 * ((packed >> 16) & 255) > 140;

/** The vectors of a place, where they are known. */
function known(s: Scene, name: string): { strips: Strips; n: number } | null {
  for (const strips of [s.block?.strips ?? null, s.vectors, s.firing]) {
    const n = strips?.index(name) ?? -1;
    if (strips && n >= 0) return { strips, n };
  }
  return null;
}

/** All steps of the floors in sight that are near enough. */
export function rows(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const here = s.stop > 0 ? s.station(s.stop) : null;
  for (const floor of s.world.floors) {
    if (camera.y(floor.y + floor.h) > s.height || camera.y(floor.y) < 0) continue;
    const near = floor.kind === 'block' ? s.near : 1;
    if (near <= 0) continue;
    const before = pen.globalAlpha;
    pen.globalAlpha = before * near;
    for (const station of floor.stations) {
      const top = camera.y(station.y + station.h);
      if (top > s.height || camera.y(station.y) < 0) continue;
      if (station === here && floor.kind === 'block') {
        const tall = station.h * camera.sy;
        pen.globalAlpha = before * near * (1 - ramp(tall, 120, 260));
        pen.fillStyle = ink['accent-soft'];
        pen.fillRect(camera.x(0) + 3, top, camera.sx * s.count - 6, tall);
        pen.globalAlpha = before * near;
      }
      row(s, pen, ink, station);
    }
    pen.globalAlpha = before;
  }
}

function row(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station): void {
  if (station.operation === 'choose' || station.operation === 'token') return;
  for (const name of station.places) {
    if (name === 'logits' || name === 'probabilities') continue;
    if (isTable(s.map, name)) table(s, pen, ink, station, name);
    else vectors(s, pen, ink, station, name);
  }
  if (s.matrix && s.matrix.step === station.step && (station.layer < 0 || s.matrix.layer === station.layer)) matrix(s, pen, ink, station);
}

/** Where the strip of a place stands inside its row, in pixels: y and height. */
export function strip(s: Scene, station: Station, name: string, out: Float64Array): Float64Array {
  const { from, to } = lane(station, name);
  const pad = station.places.length > 1 ? 0.08 : 0.17;
  const low = station.y + station.h * (from + (to - from) * pad);
  const high = station.y + station.h * (to - (to - from) * pad);
  out[0] = s.camera.y(high);
  out[1] = s.camera.y(low) - out[0];
  return out;
}
const box = new Float64Array(2);

function vectors(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, name: string): void {
  const found = known(s, name);
  const { camera } = s;
  strip(s, station, name, box);
  const [y, h] = [box[0]!, Math.min(box[1]!, 64 + 0.3 * box[1]!)];
  const top = y + (box[1]! - h) / 2;
  const wide = half(s, name);
  const kind = ink[inkOf(thing(s.map, name)?.kind ?? '')];
  const before = pen.globalAlpha;
  const heads = isHeads(s.map, name) && (station.operation === 'show' || station.operation === 'mix');
  const lengths = s.stages?.index(name) ?? -1;
  const { low, high, slim } = s;
  pen.imageSmoothingEnabled = false;
  if (slim > 0 && lengths >= 0) {
    pen.globalAlpha = before * slim;
    summary(s, pen, strong(s.stages!, [lengths], lengths, together(camera.sx), kind), top, top + h);
  }
  for (let i = low; i < high; i++) {
    if (slim >= 1 && i !== s.column) continue;
    const x = camera.x(s.middle(i) - wide);
    const w = 2 * wide * camera.sx;
    pen.globalAlpha = before * (i === s.column ? 1 : 0.5 * (1 - slim));
    if (!found?.strips.has(i)) {
      // Not at hand: how long it is, if that is known.
      pen.fillStyle = pen.strokeStyle = lengths < 0 ? ink.line : kind;
      pen.lineWidth = 1;
      if (lengths < 0) pen.strokeRect(x, top, w, h);
      else {
        pen.globalAlpha *= 0.2 + 0.8 * share(s.stages!, [lengths], lengths, i);
        pen.fillRect(x, top, w, h);
      }
      continue;
    }
    const whole = i === s.column && s.full?.name === name ? s.full : null;
    if (whole && w > found.strips.cells * 2) cells(s, pen, ink, whole.values, whole.most, x, top, w, h);
    else found.strips.draw(pen, found.n, i, x, top, w, h);
    pen.fillStyle = kind;
    pen.fillRect(x - 3, top, 2.5, h);
    if (heads && w > 40)
      for (let j = 1; j < s.heads; j++) {
        pen.fillStyle = ink.surface;
        pen.fillRect(x + (w * j) / s.heads - 1, top, 2, h);
      }
    if (i === s.column) {
      pen.strokeStyle = kind;
      pen.lineWidth = 1.2;
      pen.strokeRect(x - 0.5, top - 0.5, w + 1, h + 1);
    }
  }
  pen.globalAlpha = before;
}

/** A number with as many digits as fit. */
function brief(pen: CanvasRenderingContext2D, value: number, room: number): string {
  for (let digits = 3; digits > 1; digits--) {
    const words = number(value, digits);
    if (fit(pen, words, room) === words) return words;
  }
  return fit(pen, number(value, 1), room);
}

/** Each number in a box of its own; wide enough, it is written there. */
function cells(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, values: ArrayLike<number>, most: number, x: number, y: number, w: number, h: number): void {
  const each = w / values.length;
  const from = Math.max(0, Math.floor(-x / each));
  const to = Math.min(values.length, Math.ceil((s.width - x) / each));
  const scale = palette.signed;
  pen.font = `12px ${ink.mono}`;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  for (let j = from; j < to; j++) {
    const step = signedStep(values[j]!, most);
    pen.fillStyle = colour(scale, step);
    pen.fillRect(x + j * each, y, each > 4 ? each - 1 : each + 0.5, h);
    if (each < 38 || h < 16) continue;
    pen.fillStyle = bright(scale[step]!) ? '#1e1d1a' : '#ffffff';
    pen.fillText(brief(pen, values[j]!, each - 5), x + (j + 0.5) * each, y + h / 2);
    if (h > 44) {
      pen.globalAlpha *= 0.7;
      pen.font = `10px ${ink.mono}`;
      pen.fillText(String(j), x + (j + 0.5) * each, y + h - 10);
      pen.font = `12px ${ink.mono}`;
      pen.globalAlpha /= 0.7;
    }
  }
  if (s.spot && s.spot.name === s.full?.name) {
    pen.strokeStyle = ink.accent;
    pen.lineWidth = 2.5;
    pen.strokeRect(x + s.spot.column * each - 1, y - 2, Math.max(3, each), h + 4);
  }
}

/** Who looks at whom: for the chosen token a line of cells for each head, in the columns of the tokens looked at. Near enough, a head's whole table. */
function table(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, name: string): void {
  if (isAcross(s.map, name)) return across(s, pen, ink, station, name);
  const { camera, rows } = s;
  const known = rows && rows.position === s.column ? rows.names.indexOf(name) : -1;
  const operation = thing(s.map, name)?.operation;
  const shares = operation === 'softmax';
  const scale = shares ? palette.share : palette.signed;
  let most = shares ? 1 : 0.01;
  if (!shares && rows && known >= 0)
    for (let i = 0; i < rows.heads * s.count; i++) {
      const value = Math.abs(rows.values[known * rows.heads * s.count + i]!);
      if (value < 1e30 && value > most) most = value;
    }
  for (let head = 0; head < s.heads; head++) {
    const { y, h } = s.headRow(station, head);
    const top = camera.y(y + h);
    const tall = h * camera.sy;
    if (top > s.height || top + tall < 0) continue;
    const gap = tall > 6 ? 1 : 0;
    const whole = s.table && s.table.name === name && s.table.head === head && tall > 70 ? s.table : null;
    if (whole) {
      grid(s, pen, ink, whole, shares, top, tall);
      continue;
    }
    for (let i = s.low; i < s.high; i++) {
      const x = camera.x(s.middle(i) - 0.42);
      const w = camera.sx * 0.84;
      const closed = s.masked && i > s.column && operation !== 'score';
      if (closed || known < 0) {
        pen.fillStyle = closed ? ink.sunken : ink.surface;
        pen.fillRect(x, top, w, tall - gap);
        continue;
      }
      const value = rows!.values[(known * rows!.heads + head) * s.count + i]!;
      const step = shares ? shareStep(value) : signedStep(value, most);
      pen.fillStyle = value < MASKED ? ink.sunken : colour(scale, step);
      pen.fillRect(x, top, w, tall - gap);
      if (tall > 15 && w > 34 && value > MASKED) {
        pen.font = `11px ${ink.mono}`;
        pen.textAlign = 'center';
        pen.textBaseline = 'middle';
        pen.fillStyle = bright(scale[step]!) ? '#1e1d1a' : '#ffffff';
        pen.fillText(shares ? percent(value) : number(value, 3), x + w / 2, top + tall / 2);
      }
    }
    if (head === s.head && tall > 4) {
      pen.strokeStyle = ink.attention;
      pen.lineWidth = 1.2;
      pen.strokeRect(camera.x(s.middle(0) - 0.44), top - 0.5, camera.sx * (s.count - 0.12), tall);
    }
  }
}

/** Whom the chosen token looks at in another text: in its column a line for each head, a cell for each token there. */
function across(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, name: string): void {
  const known = s.across?.names.indexOf(name) ?? -1;
  if (!s.across || known < 0) return;
  const { heads, keys, values } = s.across;
  const shares = thing(s.map, name)?.operation === 'softmax';
  const scale = shares ? palette.share : palette.signed;
  const own = values.subarray(known * heads * keys, (known + 1) * heads * keys);
  const most = shares ? 1 : Math.max(0.01, ...Array.from(own, Math.abs).filter((one) => one < 1e30));
  const x = s.camera.x(s.middle(s.column) - 0.42);
  const each = (0.84 * s.camera.sx) / keys;
  for (let head = 0; head < heads; head++) {
    const { y, h } = s.headRow(station, head);
    const tall = h * s.camera.sy;
    for (let k = 0; k < keys; k++) {
      const value = own[head * keys + k]!;
      pen.fillStyle = value < MASKED ? ink.sunken : colour(scale, shares ? shareStep(value) : signedStep(value, most));
      pen.fillRect(x + k * each, s.camera.y(y + h), Math.max(1, each - 1), tall - (tall > 6 ? 1 : 0));
    }
  }
  pen.strokeStyle = ink.query;
  pen.lineWidth = 1.2;
  const { y } = s.headRow(station, 0);
  const { y: top, h } = s.headRow(station, heads - 1);
  const [from, to] = [s.camera.y(Math.max(y, top) + h), s.camera.y(Math.min(y, top))];
  pen.strokeRect(x - 1.5, from - 1.5, keys * each + 2, to - from + 2);
}

/** A head's table: a line for each token that looks, a column for each looked at. */
function grid(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, table: NonNullable<Scene['table']>, shares: boolean, top: number, tall: number): void {
  const { camera } = s;
  const scale = shares ? palette.share : palette.signed;
  const { first, count } = s.lines;
  const high = tall / count;
  let most = shares ? 1 : 0.01;
  if (!shares) for (let i = 0; i < table.values.length; i++) if (Math.abs(table.values[i]!) < 1e30) most = Math.max(most, Math.abs(table.values[i]!));
  for (let q = first; q < first + count; q++) {
    const y = top + (q - first) * high;
    if (y > s.height || y + high < 0) continue;
    for (let k = s.low; k < s.high; k++) {
      const x = camera.x(s.middle(k) - 0.47);
      const w = camera.sx * 0.94;
      const value = table.values[q * table.size + k]!;
      const hidden = value < MASKED || (s.masked && k > q && value === 0);
      const step = shares ? shareStep(value) : signedStep(value, most);
      pen.fillStyle = hidden ? ink.sunken : colour(scale, step);
      pen.fillRect(x, y + 0.5, w, high - 1);
      if (hidden || high < 14 || w < 34) continue;
      pen.font = `${q === s.column ? 650 : 400} 12px ${ink.mono}`;
      pen.textAlign = 'center';
      pen.textBaseline = 'middle';
      pen.fillStyle = bright(scale[step]!) ? '#1e1d1a' : '#ffffff';
      pen.fillText(shares ? (w > 52 ? percent(value) : wholePercent(value)) : number(value, 3), x + w / 2, y + high / 2);
    }
    if (q === s.column) {
      pen.strokeStyle = ink.accent;
      pen.lineWidth = 2;
      pen.strokeRect(camera.x(s.middle(0) - 0.49), y, camera.sx * (s.count - 0.02), high);
    }
  }
}

/** The matrix of a step, beside the token that goes through it; the column that made the chosen number is lit. */
function matrix(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station): void {
  const found = s.matrix!;
  const tile = s.tile(station);
  const { camera } = s;
  const [x, y, w, h] = [camera.x(tile.x), camera.y(tile.y + tile.h), tile.w * camera.sx, tile.h * camera.sy];
  if (w < 12 || h < 8 || x > s.width || x + w < 0) return;
  pen.fillStyle = ink.surface;
  pen.fillRect(x - 3, y - 3, w + 6, h + 6);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(painted(found), x, y, w, h);
  pen.strokeStyle = ink['line-strong'];
  pen.lineWidth = 1;
  pen.strokeRect(x - 1, y - 1, w + 2, h + 2);
  if (s.spot && found.shape[1] && station.places.includes(s.spot.name)) {
    const column = lit(s, station) / found.shape[1];
    pen.strokeStyle = ink.accent;
    pen.lineWidth = 2;
    pen.strokeRect(x + column * w - 1, y - 2, Math.max(3, w / found.shape[1]), h + 4);
  }
  if (w < 70) return;
  pen.font = `11px ${ink.sans}`;
  pen.fillStyle = ink['ink-2'];
  pen.textAlign = 'left';
  pen.textBaseline = 'bottom';
  pen.fillText(found.shape.join(' × '), x, y - 3);
}

/** The matrix as a picture, painted once for each theme. */
let heat: { of: unknown; scale: Uint32Array; canvas: HTMLCanvasElement } | null = null;
function painted(found: NonNullable<Scene['matrix']>): HTMLCanvasElement {
  const scale = palette.signed;
  if (heat && heat.of === found.values && heat.scale === scale) return heat.canvas;
  const canvas = document.createElement('canvas'); // another matrix is another picture: a drawing that moves holds both
  canvas.width = found.columns;
  canvas.height = found.rows;
  const pen = canvas.getContext('2d')!;
  const image = pen.createImageData(found.columns, found.rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < found.rows; i++) for (let j = 0; j < found.columns; j++) pixels[i * found.columns + j] = scale[signedStep(found.values[i]![j]!, found.most)]!;
  pen.putImageData(image, 0, 0);
  heat = { of: found.values, scale, canvas };
  return canvas;
}

/** Which column of the matrix made the number: one matrix may make several things, one after the other. */
function lit(s: Scene, station: Station): number {
  const all = s.matrix!.shape[1] ?? 1;
  return (station.places.indexOf(s.spot!.name) * all) / station.places.length + s.spot!.column;
}
