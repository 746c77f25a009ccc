/** What moves between two stops: vectors on their way, values gathered, the shutter of the mask, shares that fill. */

import { visible } from '../../../lib/token';
import { thing } from '../../../state/map';
import { round } from './ends';
import { ease, groupInk, inkOf, type Ink } from './ink';
import { inputs, isAcross, isTable, type Station } from './layout';
import { course, girth, summary } from './machine';
import { half, strip } from './rows';
import type { Scene } from './scene';
import { row, together } from './summary';

const a = new Float64Array(2);
const b = new Float64Array(2);

/** Paint what is on its way to the stop. `far`: the block is not looked into, so its steps are too small to be seen. */
export function travel(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, far: boolean): void {
  const station = s.station(s.stop);
  if (!station || s.way >= 1) return;
  const f = ease(s.way);
  pen.globalAlpha = 1;
  if (station.operation === 'choose') return chosen(s, pen, ink, s.way);
  if (station.layer >= 0 && far) return distant(s, pen, ink, station, f);
  const name = station.places[0] ?? '';
  const operation = station.operation;
  if (isTable(s.map, name) && isAcross(s.map, name)) return; // between two pictures: whoever shows both draws it
  if (operation === 'mask') shutter(s, pen, ink, station, f);
  else if (operation === 'softmax' && isTable(s.map, name)) fill(s, pen, ink, station, f);
  else if (operation === 'score') meet(s, pen, ink, station, f);
  else {
    if (operation === 'mix') gather(s, pen, ink, station, f);
    else for (const made of station.places) carry(s, pen, ink, station, made, f);
  }
  if (operation === 'activate') bend(s, pen, ink, station, f);
  pen.globalAlpha = 1;
}

const from = (s: Scene): number => (s.alone ? s.column : s.low);
const to = (s: Scene): number => (s.alone ? s.column + 1 : s.high);

/** The same of columns that are summarised: the whole row comes up to its place, as strong as its vectors are long. */
function rise(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, made: string, f: number): void {
  const n = s.stages?.index(made) ?? -1;
  if (s.alone || n < 0) return;
  const y = s.camera.y(0) + (b[0]! - s.camera.y(0)) * f;
  pen.globalAlpha = f;
  summary(s, pen, row(s.stages!, [n], n, together(s.camera.sx), ink[inkOf(thing(s.map, made)?.kind ?? '')]), y, y + b[1]!);
  pen.globalAlpha = 1;
}

/** A vector leaves the row where it was made and becomes, on its way, what this step makes of it. */
function carry(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, made: string, f: number): void {
  const strips = (s.block?.strips.index(made) ?? -1) >= 0 ? s.block!.strips : s.vectors;
  const n = strips?.index(made) ?? -1;
  strip(s, station, made, b);
  const slim = s.slim >= 1;
  if (slim) rise(s, pen, ink, made, f);
  pen.imageSmoothingEnabled = false;
  const wide = half(s, made);
  const sources = inputs(s.map, made);
  for (let i = from(s); i < to(s); i++) {
    if (slim && i !== s.column) continue;
    const x = s.camera.x(s.middle(i));
    for (const source of sources) {
      const before = s.laneOf(source);
      // Tokens and positions have no row of their own: they come from the foot of the column.
      let y0 = s.camera.y(0);
      let h0 = 8;
      let w0 = 0.2;
      let x0 = x;
      let strips0 = s.block?.strips ?? null;
      let n0 = strips0?.index(source) ?? -1;
      if (before) {
        strip(s, before.station, source, a);
        [y0, h0] = [a[0]!, a[1]!];
        w0 = half(s, source);
        const stage = s.near > 0.5 ? s.world.stages.findIndex((one) => one.name === source) : -1;
        if (stage >= 0 && s.stages) {
          // From near the stream comes out of its river, beside the step.
          x0 = course(s, i);
          y0 = b[0]! + 14;
          h0 = b[1]!;
          w0 = girth(s, stage, i) / (2 * s.camera.sx);
        }
        if (n0 < 0) {
          strips0 = s.vectors;
          n0 = strips0?.index(source) ?? -1;
        }
      }
      const y = y0 + (b[0]! - y0) * f;
      const h = Math.min(40, h0 + (b[1]! - h0) * f);
      const w = 2 * (w0 + (wide - w0) * f) * s.camera.sx;
      const at = x0 + (x - x0) * f;
      if (strips0 && n0 >= 0) {
        pen.globalAlpha = 1 - f;
        strips0.draw(pen, n0, i, at - w / 2, y, w, h);
      }
      if (strips && n >= 0) {
        pen.globalAlpha = f;
        strips.draw(pen, n, i, at - w / 2, y, w, h);
      }
      pen.globalAlpha = 1;
      pen.strokeStyle = ink[inkOf(thing(s.map, made)?.kind ?? '')];
      pen.lineWidth = i === s.column ? 2 : 1;
      pen.strokeRect(at - w / 2, y, w, h);
    }
  }
}

/** The share of the chosen head's attention that a column gets; over all heads where that is not known. */
function weight(s: Scene, station: Station, k: number): number {
  const { rows } = s;
  const look = s.world.looks.findIndex((one) => one.station.layer === station.layer);
  if (rows && rows.layer === station.layer && rows.position === s.column && look >= 0) {
    const at = rows.names.indexOf(s.world.looks[look]!.name);
    if (at >= 0) return rows.values[(at * rows.heads + Math.min(s.head, rows.heads - 1)) * s.count + k] ?? 0;
  }
  return look >= 0 ? s.look(look, s.column, k) : 0;
}

/** The query meets every key: a thread from each of the two to the cell of their score. */
function meet(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, f: number): void {
  const [queries = '', keys = ''] = inputs(s.map, station.places[0]!);
  const [q, k] = [s.laneOf(queries), s.laneOf(keys)];
  if (!q || !k) return;
  strip(s, q.station, queries, a);
  strip(s, k.station, keys, b);
  const [y0, y1] = [a[0]!, b[0]!];
  const target = s.camera.y(station.y + station.h / 2);
  const x0 = s.camera.x(s.middle(s.column));
  const last = s.masked ? s.column + 1 : s.count;
  for (let i = s.low; i < Math.min(last, s.high); i++) {
    const x = s.camera.x(s.middle(i));
    pen.lineWidth = 1.6;
    pen.globalAlpha = 0.8;
    pen.strokeStyle = ink.query;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x0 + (x - x0) * f, y0 + (target - y0) * f);
    pen.stroke();
    pen.strokeStyle = ink.key;
    pen.beginPath();
    pen.moveTo(x, y1);
    pen.lineTo(x, y1 + (target - y1) * f);
    pen.stroke();
    pen.fillStyle = ink.attention;
    pen.globalAlpha = f;
    pen.beginPath();
    pen.arc(x, target, 4 * f, 0, 7);
    pen.fill();
  }
}

/** The future is closed: a shutter falls over every column that comes later. */
function shutter(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, f: number): void {
  const left = s.camera.x(s.column + 1);
  const right = s.camera.x(s.count);
  const top = s.camera.y(station.y + station.h);
  const high = station.h * s.camera.sy * f;
  if (right <= left) return;
  pen.globalAlpha = 0.94;
  pen.fillStyle = ink.sunken;
  pen.fillRect(left, top, right - left, high);
  pen.strokeStyle = ink['line-strong'];
  pen.lineWidth = 1;
  pen.beginPath();
  for (let y = top + 5; y < top + high; y += 6) {
    pen.moveTo(left, y);
    pen.lineTo(right, y);
  }
  pen.stroke();
  pen.fillStyle = ink['ink-3'];
  pen.fillRect(left, top + high - 3, right - left, 3);
}

/** The bars of the row trade height until they are shares of a whole. */
function fill(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, f: number): void {
  const bottom = s.camera.y(station.y) - 2;
  const high = station.h * s.camera.sy * 0.9;
  const last = s.masked ? s.column + 1 : s.count;
  pen.fillStyle = ink.attention;
  for (let k = s.low; k < Math.min(last, s.high); k++) {
    const share = (1 - f) / last + f * weight(s, station, k);
    const w = Math.min(26, s.camera.sx * 0.4);
    pen.globalAlpha = 0.55;
    pen.fillRect(s.camera.x(s.middle(k)) - w / 2, bottom - high * share, w, high * share);
  }
}

/** What each token has to give comes along its line, as much of it as the weight says. */
function gather(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, f: number): void {
  const values = inputs(s.map, station.places[0]!)[1] ?? '';
  const source = s.laneOf(values);
  if (!source) return;
  strip(s, source.station, values, a);
  strip(s, station, station.places[0]!, b);
  const [y0, y1] = [a[0]! + a[1]! / 2, b[0]! + b[1]! / 2];
  const x1 = s.camera.x(s.middle(s.column));
  const last = s.masked ? s.column + 1 : s.count;
  for (let k = 0; k < last; k++) {
    const share = weight(s, station, k);
    if (share < 0.01) continue;
    const x0 = s.camera.x(s.middle(k));
    pen.strokeStyle = ink.value;
    pen.globalAlpha = 0.25 + 0.4 * share;
    pen.lineWidth = Math.max(1, 12 * share);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0, y0 + (y1 - y0) * 0.6, x1, y1 - (y1 - y0) * 0.6, x1, y1);
    pen.stroke();
    const g = 1 - f;
    const c = (y1 - y0) * 0.6;
    const x = g * g * g * x0 + 3 * g * g * f * x0 + 3 * g * f * f * x1 + f * f * f * x1;
    const y = g * g * g * y0 + 3 * g * g * f * (y0 + c) + 3 * g * f * f * (y1 - c) + f * f * f * y1;
    pen.globalAlpha = 0.95;
    pen.fillStyle = ink.value;
    pen.beginPath();
    pen.arc(x, y, 3 + 9 * Math.sqrt(share), 0, 7);
    pen.fill();
  }
}

/** What the activation lets through, as a curve made of the neurons themselves: each slides from what it was to what is left of it. */
function bend(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, f: number): void {
  const { bent } = s;
  if (!bent || bent.layer !== station.layer || !bent.x.length) return;
  const wide = Math.min(190, s.width * 0.32);
  const high = Math.max(84, Math.min(130, station.h * s.camera.sy * 2));
  const x = Math.max(s.margin('machine').left, Math.min(s.width - wide - 12, s.camera.x(s.middle(s.column)) - wide - s.camera.sx * 0.5));
  const y = Math.max(8, Math.min(s.height - high - 40, s.camera.y(station.y + station.h / 2) - high / 2));
  pen.globalAlpha = Math.min(1, 6 * Math.min(f, 1 - f));
  pen.fillStyle = ink.surface;
  pen.strokeStyle = ink['line-strong'];
  pen.lineWidth = 1;
  pen.beginPath();
  pen.roundRect(x, y, wide, high, 8);
  pen.fill();
  pen.stroke();
  const [low, top] = [bent.x[0]!, bent.x.at(-1)!];
  const most = Math.max(1e-6, bent.y.at(-1)!);
  const px = (v: number): number => x + 10 + ((v - low) / (top - low || 1)) * (wide - 20);
  const py = (v: number): number => y + high - 16 - (v / most) * (high - 30);
  pen.strokeStyle = ink['line-strong'];
  pen.beginPath();
  pen.moveTo(x + 8, py(0));
  pen.lineTo(x + wide - 8, py(0));
  pen.stroke();
  const every = Math.max(1, Math.floor(bent.x.length / 160));
  pen.strokeStyle = ink.neuron;
  pen.lineWidth = 1.6;
  pen.beginPath();
  for (let j = 0; j < bent.x.length; j += every) {
    if (j) pen.lineTo(px(bent.x[j]!), py(bent.y[j]!));
    else pen.moveTo(px(bent.x[j]!), py(bent.y[j]!));
  }
  pen.stroke();
  pen.fillStyle = ink.neuron;
  for (let j = 0; j < bent.x.length; j += every * 2) {
    const at = py(0) + (py(bent.y[j]!) - py(0)) * f;
    pen.fillRect(px(bent.x[j]!) - 1.5, at - 1.5, 3, 3);
  }
}

/** From far away a block is one movement: values run along their lines, the swelling glows, a light rises on each river. */
function distant(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, station: Station, f: number): void {
  const attention = station.group === 'attention';
  const part = s.world.parts.find((one) => one.layer === station.layer && one.group === station.group);
  if (!part) return;
  const done = (station.y + station.h * f - part.y) / part.h;
  if (attention) {
    const look = s.world.looks.findIndex((one) => one.station.layer === station.layer);
    // What each has to give runs along its line: larger where the weight is.
    const y0 = s.camera.y(part.y + part.h * 0.06);
    const y1 = s.camera.y(part.y + part.h * 0.94);
    const g = Math.max(0, Math.min(1, done));
    const [p, q, r] = [(1 - g) ** 3 + 3 * g * (1 - g) ** 2, 3 * g * g * (1 - g) + g ** 3, y1 - y0];
    const y = y0 + r * (3 * g * (1 - g) ** 2 * 0.62 + 3 * g * g * (1 - g) * 0.38 + g ** 3);
    pen.fillStyle = ink.attention;
    for (const arc of s.arcs) {
      if (arc.look !== look || (s.alone && arc.q !== s.column) || s.strength(arc, s.column) <= 0) continue;
      const own = arc.q === s.column;
      const size = (own ? 3 : 2) + (own ? 6 : 3) * Math.sqrt(arc.weight);
      pen.globalAlpha = own ? 0.95 : 0.25 + 0.5 * arc.weight;
      pen.fillRect(s.camera.x(arc.k + 0.5) * p + s.camera.x(arc.q + 0.5) * q - size / 2, y - size / 2, size, size);
    }
  }
  const y = s.camera.y(part.y + part.h * done);
  const stage = Math.max(0, s.world.stages.findIndex((one) => one.from <= station.y && one.to >= station.y));
  if (!s.stages) return;
  pen.fillStyle = ink[groupInk(station.group)];
  const slim = s.slim >= 1;
  if (slim && !s.alone) {
    // Too narrow for a light each: one runs up all of them.
    pen.globalAlpha = 0.6;
    pen.fillRect(s.camera.x(0), y - 1, s.count * s.camera.sx, 2);
  }
  for (let i = from(s); i < to(s); i++) {
    if (slim && i !== s.column) continue;
    const wide = girth(s, stage, i) * (station.group !== 'mlp' ? 1 : 1 + 1.4 * Math.sin(Math.PI * Math.max(0, Math.min(1, done))));
    pen.globalAlpha = i === s.column ? 0.95 : 0.6;
    pen.fillRect(s.camera.x(s.middle(i)) - wide / 2, y - 2, wide, 4);
  }
}

/** The word that was chosen goes round and stands where the next column will be. */
function chosen(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, f: number): void {
  const word = s.comes?.word;
  if (!word || f < 0.25) return;
  const part = ease((f - 0.25) / 0.75);
  let whole = 0;
  for (let i = 0; i < 8; i += 2) whole += Math.hypot(round[i + 2]! - round[i]!, round[i + 3]! - round[i + 1]!);
  let left = part * whole;
  let [x, y] = [round[0]!, round[1]!];
  for (let i = 0; i < 8; i += 2) {
    const length = Math.hypot(round[i + 2]! - round[i]!, round[i + 3]! - round[i + 1]!);
    const share = length ? Math.min(1, left / length) : 1;
    x = round[i]! + (round[i + 2]! - round[i]!) * share;
    y = round[i + 1]! + (round[i + 3]! - round[i + 1]!) * share;
    left -= length;
    if (left <= 0) break;
  }
  pen.font = `700 12.5px ${ink.mono}`;
  const name = visible(word);
  const wide = Math.min(120, pen.measureText(name).width + 14);
  x = Math.min(x, s.width - wide / 2 - 2);
  pen.globalAlpha = 1;
  pen.fillStyle = ink.token;
  pen.beginPath();
  pen.roundRect(x - wide / 2, y - 11, wide, 22, 6);
  pen.fill();
  pen.fillStyle = ink.surface;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillText(name, x, y + 0.5, wide - 8);
}
