/** The whole machine: rivers, what tokens take from each other, neurons, the matrix at the side. */

import { t } from '../../../state/preferences.svelte';
import { thing } from '../../../state/map';
import { fit, groupInk, type Ink } from './ink';
import type { Scene } from './scene';
import { row, swelling, together } from './summary';

/** How wide the river of a token is at a stage: by the length of its vector, on a scale on which small ones can be seen. */
export function girth(s: Scene, stage: number, i: number): number {
  const strips = s.stages!;
  const longest = Math.log1p(longestOf(s));
  const part = longest ? Math.log1p(strips.length(stage, i)) / longest : 0;
  const least = i === s.column ? 3 : Math.min(3, s.camera.sx * 0.7);
  const wide = Math.max(least, Math.min(46, s.camera.sx * 0.4) * (0.25 + 0.75 * part));
  return wide + (Math.max(4, wide * 0.3) - wide) * s.near;
}
function longestOf(s: Scene): number {
  let most = 0;
  const { longest } = s.stages!;
  for (let n = 0; n < longest.length; n++) if (longest[n]! > most) most = longest[n]!;
  return most;
}

export function floors(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const left = camera.x(-0.04);
  const wide = camera.x(s.count + 0.04) - left;
  for (const floor of s.world.floors) {
    const top = camera.y(floor.y + floor.h);
    const high = floor.h * camera.sy;
    if (top > s.height || top + high < 0) continue;
    if (floor.kind !== 'block') continue;
    pen.fillStyle = ink.surface;
    pen.strokeStyle = ink.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.roundRect(left, top, wide, high, Math.min(12, high / 4));
    pen.fill();
    pen.stroke();
  }
  // The parts of each block: a stripe of their colour at its edge.
  for (const part of s.world.parts) {
    const top = camera.y(part.y + part.h);
    const high = part.h * camera.sy;
    if (top > s.height || top + high < 0) continue;
    pen.fillStyle = ink[groupInk(part.group)];
    pen.globalAlpha *= 0.75;
    pen.fillRect(left - 1, top + 2, 3, high - 4);
    pen.globalAlpha /= 0.75;
  }
}

/** A column narrower than this is summarised. */
const SMALL = 22;

/** Where a river runs: in the middle of its column; from near at its right edge, past the steps that draw from it. */
export const course = (s: Scene, i: number): number => s.camera.x(i + 0.5 + 0.42 * s.near);

/** The river of every token, from where it begins to where the scores are made. */
export function rivers(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera, stages, vectors, low, high, slim } = s;
  if (!stages) return;
  const before = pen.globalAlpha;
  pen.imageSmoothingEnabled = false;
  const small = camera.sx < SMALL;
  if (slim > 0) {
    const all = s.world.stages.map((_, n) => n);
    pen.globalAlpha = before * slim;
    for (const [n, stage] of s.world.stages.entries()) summary(s, pen, row(stages, all, n, together(camera.sx), ink.residual), Math.round(camera.y(stage.to)), Math.round(camera.y(stage.from)));
  }
  for (let i = low; i < high; i++) {
    const centre = course(s, i);
    const own = i === s.column;
    if (slim >= 1 && !own) continue;
    for (let n = 0; n < s.world.stages.length; n++) {
      const stage = s.world.stages[n]!;
      const top = Math.round(camera.y(stage.to));
      const tall = Math.round(camera.y(stage.from)) - top;
      if (top > s.height || top + tall < 0) continue;
      const wide = girth(s, n, i);
      const edge = own ? 1.5 : 1;
      const texture = (own || !small) && vectors?.has(i) ? vectors : null; // without, its width says how long the vector is
      pen.globalAlpha = before * (own ? 0.9 : texture ? 0.45 : 0.15 * (1 - slim));
      pen.fillStyle = ink.residual;
      pen.fillRect(centre - wide / 2 - edge, top, wide + 2 * edge, tall);
      if (!texture) continue;
      pen.globalAlpha = before;
      pen.fillStyle = ink.surface;
      pen.fillRect(centre - wide / 2, top, wide, tall);
      pen.globalAlpha = before * (own ? 0.95 : 0.62);
      texture.draw(pen, n, i, centre - wide / 2, top, wide, tall);
    }
  }
  pen.globalAlpha = before;
}

/** Where a network is recurrent: what each token hands on to the next, from the beginning, from the end, or both. */
export function recurrences(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const before = pen.globalAlpha;
  pen.lineWidth = 1.5;
  for (const { name, station } of s.world.recurs) {
    const middle = camera.y(station.y + station.h / 2);
    if (middle < 0 || middle > s.height) continue;
    const ways = s.both ? [1, -1] : [name.includes('backwards') ? -1 : 1];
    for (const way of ways) {
      const y = middle + (s.both ? 5 * way : 0);
      for (let i = Math.max(1, s.low); i < s.high; i++) {
        const [from, to] = way > 0 ? [i - 1, i] : [i, i - 1];
        const done = (way > 0 ? to : s.count - 1 - to) < s.heard;
        const room = Math.min(16, camera.sx * 0.22);
        const [x0, x1] = [course(s, from) + way * room, course(s, to) - way * room];
        if ((x1 - x0) * way < 4) continue;
        pen.globalAlpha = before * (done ? 0.9 : 0.25);
        pen.strokeStyle = pen.fillStyle = done ? ink.neuron : ink['line-strong'];
        pen.beginPath();
        pen.moveTo(x0, y);
        pen.lineTo(x1 - 3 * way, y);
        pen.stroke();
        pen.beginPath();
        pen.moveTo(x1, y);
        pen.lineTo(x1 - 5 * way, y - 3.5);
        pen.lineTo(x1 - 5 * way, y + 3.5);
        pen.fill();
      }
    }
  }
  pen.globalAlpha = before;
}

/** What a recurrent network has not read yet lies in the dark; read from both sides, each half of a vector has its own time. */
export function unread(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  if (s.heard >= s.count || !s.stages) return;
  const before = pen.globalAlpha;
  pen.fillStyle = ink.paper;
  pen.globalAlpha = before * 0.82;
  for (let i = s.low; i < s.high; i++) {
    const [on, back] = [i < s.heard, s.both && s.count - 1 - i < s.heard];
    s.world.stages.forEach((stage, n) => {
      const top = s.camera.y(stage.to);
      const tall = s.camera.y(stage.from) - top;
      const wide = girth(s, n, i) + 4;
      const left = course(s, i) - wide / 2;
      if (!thing(s.map, stage.name) || thing(s.map, stage.name)!.operation !== 'recur') {
        if (on || back) return;
        pen.fillRect(left, top, wide, tall);
        pen.fillRect(s.camera.x(i + 0.04), s.camera.y(stage.to), s.camera.sx * 0.92, tall + 40);
      } else {
        if (!on) pen.fillRect(left, top, s.both ? wide / 2 : wide, tall);
        if (s.both && !back) pen.fillRect(left + wide / 2, top, wide / 2, tall);
      }
    });
  }
  pen.globalAlpha = before;
}

/** A picture of all columns, from a height of the screen to another. */
export function summary(s: Scene, pen: CanvasRenderingContext2D, picture: HTMLCanvasElement, top: number, bottom: number): void {
  if (top > s.height || bottom < 0 || bottom <= top) return;
  const { camera } = s;
  pen.drawImage(picture, 0, 0, picture.width, picture.height, camera.x(0), top, picture.width * together(camera.sx) * camera.sx, bottom - top);
}

/** Where the MLP widens: a swelling around each river, gold where neurons fire. */
export function swellings(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, alpha: number): void {
  const { camera, neurons, firing, low, high, slim } = s;
  if (alpha <= 0 || !neurons) return; // nothing is drawn that is not known yet
  const before = pen.globalAlpha;
  const room = camera.sx * 0.92;
  pen.imageSmoothingEnabled = false;
  for (let n = 0; n < s.world.neurons.length; n++) {
    const { station, part } = s.world.neurons[n]!;
    const [top, bottom] = [camera.y(part.y + part.h), camera.y(part.y)];
    if (top > s.height || bottom < 0 || !part.h) continue;
    const middle = camera.y(station.y + station.h / 2);
    if (slim > 0) {
      const tall = Math.min(22, (bottom - top) * 0.9) / 2;
      pen.globalAlpha = before * alpha * slim * 0.6;
      summary(s, pen, swelling(neurons, n, together(camera.sx), ink.neuron), middle - tall, middle + tall);
    }
    for (let i = low; i < high; i++) {
      if (slim >= 1 && i !== s.column) continue;
      const centre = camera.x(i + 0.5);
      const share = neurons.longest[n] ? neurons.length(n, i) / neurons.longest[n]! : 0;
      const half = Math.min(room, Math.max(10, Math.min(110, room) * (0.6 + 0.4 * share))) / 2;
      pen.globalAlpha = before * alpha * (i === s.column ? 1 : 0.8);
      pen.fillStyle = ink['neuron-soft'];
      pen.strokeStyle = ink.neuron;
      pen.lineWidth = i === s.column ? 1.2 : 0.6;
      if (camera.sx < SMALL && i !== s.column) {
        const wide = Math.min(half, room / 2) * 1.4;
        pen.globalAlpha = before * alpha * (0.2 + 0.5 * share) * (1 - slim);
        pen.fillStyle = ink.neuron;
        pen.fillRect(centre - wide / 2, middle - 1.5, wide, 3);
        continue;
      }
      pen.beginPath();
      pen.moveTo(centre, bottom);
      pen.bezierCurveTo(centre - half * 0.2, (bottom + middle) / 2, centre - half, (bottom + middle) / 2, centre - half, middle);
      pen.bezierCurveTo(centre - half, (top + middle) / 2, centre - half * 0.2, (top + middle) / 2, centre, top);
      pen.bezierCurveTo(centre + half * 0.2, (top + middle) / 2, centre + half, (top + middle) / 2, centre + half, middle);
      pen.bezierCurveTo(centre + half, (bottom + middle) / 2, centre + half * 0.2, (bottom + middle) / 2, centre, bottom);
      pen.fill();
      pen.stroke();
      if (!firing?.has(i) || firing.index(s.world.neurons[n]!.name) !== n) continue;
      // The neurons themselves, those that fire as gold marks on the widest line.
      pen.fillStyle = ink.neuron;
      const { cells } = firing;
      const most = firing.most[n]! || 1;
      const tall = Math.min(16, (bottom - top) * 0.4);
      for (let j = 0; j < cells; j++) {
        const fires = firing.cell(n, i, j) / most;
        if (fires < 0.25) continue;
        pen.globalAlpha = before * alpha * Math.min(1, 0.3 + 0.7 * fires);
        const x = centre - half * 0.86 + (1.72 * half * (j + 0.5)) / cells;
        const high = tall * Math.min(1, fires);
        pen.fillRect(x - 0.6, middle - high / 2, Math.max(1, (1.2 * half) / cells), high);
      }
    }
  }
  pen.globalAlpha = before;
}

/** Where the curve of a look begins and ends: from the token looked at, upward to the one that looks. */
export function curve(s: Scene, pen: CanvasRenderingContext2D, look: number, k: number, q: number): void {
  const { camera } = s;
  const { part } = s.world.looks[look]!;
  const y0 = camera.y(part.y + part.h * 0.06);
  const y1 = camera.y(part.y + part.h * 0.94);
  const [x0, x1] = [camera.x(k + 0.5), camera.x(q + 0.5)];
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(x0, y0 + (y1 - y0) * 0.62, x1, y1 - (y1 - y0) * 0.62, x1, y1);
}

export function arcs(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, alpha: number): void {
  if (alpha <= 0) return;
  const before = pen.globalAlpha;
  const thick = Math.max(2.5, Math.min(11, s.camera.sx * 0.16));
  pen.strokeStyle = ink.attention;
  pen.lineCap = 'round';
  const { shown } = s;
  const apart = s.byHead && shown === s.column;
  for (let pass = 0; pass < 2; pass++)
    for (const arc of s.arcs) {
      const { look, q, k, weight } = arc;
      if ((q === shown) !== (pass === 1) || (apart && pass)) continue;
      const strength = s.strength(arc, shown);
      if (strength <= 0) continue;
      const { part } = s.world.looks[look]!;
      if (s.camera.y(part.y) < 0 || s.camera.y(part.y + part.h) > s.height) continue;
      pen.globalAlpha = before * alpha * strength * (pass ? Math.min(0.95, 0.4 + weight) : 0.06 + 0.34 * weight);
      pen.lineWidth = pass ? Math.max(1, thick * weight) : Math.max(0.6, thick * weight * 0.6);
      pen.beginPath();
      curve(s, pen, look, k, q);
      pen.stroke();
    }
  pen.globalAlpha = before;
}

/** The colour of a head, the same in every layer: around the circle, as light as the theme wants it. */
export const headInk = (head: number, heads: number, dark: boolean): string => `hsl(${Math.round((360 * head) / Math.max(1, heads) + 335) % 360} ${dark ? '80% 70%' : '75% 38%'})`;

/** What the chosen token takes from each, head by head: each head has a colour, and its lines lie side by side. */
export function headArcs(s: Scene, pen: CanvasRenderingContext2D, alpha: number, dark: boolean): void {
  if (alpha <= 0 || !s.byHead || (s.over && s.over.column >= 0 && s.over.column !== s.column)) return;
  const before = pen.globalAlpha;
  const { heads } = s.byHead;
  const thick = Math.max(2, Math.min(8, s.camera.sx * 0.12));
  pen.lineCap = 'round';
  for (const { look, head, k, weight } of s.byHead.arcs) {
    const { part } = s.world.looks[look]!;
    if (s.camera.y(part.y) < 0 || s.camera.y(part.y + part.h) > s.height) continue;
    pen.globalAlpha = before * alpha * Math.min(0.95, 0.35 + weight);
    pen.strokeStyle = headInk(head, heads, dark);
    pen.lineWidth = Math.max(1, thick * weight);
    pen.beginPath();
    curve(s, pen, look, k + ((head + 0.5) / heads - 0.5) * 0.5, s.column);
    pen.stroke();
  }
  pen.globalAlpha = before;
}

/** The matrix of the tokens stands at the side, once: what is looked up in it below, and what the scores are made with above. */
export function tied(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, alpha: number): void {
  if (alpha <= 0 || !s.tied || s.narrow()) return;
  const [below, above] = s.tied.map((name) => s.laneOf(name)?.station);
  if (!below || !above) return;
  const { camera } = s;
  const x = camera.x(s.slots) + 10;
  const [low, high] = [camera.y(below.y + below.h / 2), camera.y(above.y + above.h / 2)];
  const middle = (low + high) / 2;
  const [wide, tall] = [26, Math.min(150, (low - high) * 0.4)];
  if (x + wide > s.width - 16 || tall < 24) return;
  const before = pen.globalAlpha;
  pen.globalAlpha = before * alpha;
  pen.strokeStyle = ink.token;
  pen.lineWidth = 1.5;
  for (const [end, edge] of [[low, middle + tall / 2], [high, middle - tall / 2]] as const) {
    pen.beginPath();
    pen.moveTo(x + wide / 2, edge);
    pen.lineTo(x + wide / 2, end + (edge > end ? 10 : -10));
    pen.quadraticCurveTo(x + wide / 2, end, x + wide / 2 - 10, end);
    pen.lineTo(camera.x(s.count) + 2, end);
    pen.stroke();
    pen.fillStyle = ink.token;
    pen.beginPath();
    pen.moveTo(camera.x(s.count) - 4, end);
    pen.lineTo(camera.x(s.count) + 4, end - 4);
    pen.lineTo(camera.x(s.count) + 4, end + 4);
    pen.fill();
  }
  pen.fillStyle = ink['token-soft'];
  pen.beginPath();
  pen.roundRect(x, middle - tall / 2, wide, tall, 3);
  pen.fill();
  if (s.tiedPicture) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(s.tiedPicture, 0, 0, s.tiedPicture.width, s.tiedPicture.height, x + 2, middle - tall / 2 + 2, wide - 4, tall - 4);
  }
  pen.stroke();
  pen.save();
  pen.translate(x + wide + 9, middle);
  pen.rotate(-Math.PI / 2);
  pen.font = `11px ${ink.sans}`;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillStyle = ink.token;
  pen.fillText(fit(pen, t('walk.tied'), Math.max(tall, (low - high) * 0.9)), 0, 0);
  pen.restore();
  pen.globalAlpha = before;
}
