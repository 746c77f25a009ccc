/** The whole machine: rivers, what tokens take from each other, neurons, words at both ends. */

import { percent } from '../../../lib/format';
import { visible } from '../../../lib/token';
import { t } from '../../../state/preferences.svelte';
import { groupName, title } from '../steps';
import { fit, groupInk, ramp, type Ink } from './ink';
import type { Scene } from './scene';

/** How wide the river of a token is at a stage: by the length of its vector, on a scale on which small ones can be seen. */
export function girth(s: Scene, stage: number, i: number): number {
  const strips = s.stages!;
  const longest = Math.log1p(longestOf(s));
  const part = longest ? Math.log1p(strips.length(stage, i)) / longest : 0;
  const wide = Math.max(3, Math.min(46, s.camera.sx * 0.4) * (0.25 + 0.75 * part));
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
  const { camera, stages } = s;
  if (!stages) return;
  const [low, high] = [Math.max(0, Math.floor(camera.atX(0)) - 1), Math.min(s.count, Math.ceil(camera.atX(s.width)) + 1)];
  const before = pen.globalAlpha;
  pen.imageSmoothingEnabled = false;
  const small = camera.sx < SMALL;
  for (let i = low; i < high; i++) {
    const centre = course(s, i);
    const own = i === s.column;
    for (let n = 0; n < s.world.stages.length; n++) {
      const stage = s.world.stages[n]!;
      const top = Math.round(camera.y(stage.to));
      const tall = Math.round(camera.y(stage.from)) - top;
      if (top > s.height || top + tall < 0) continue;
      const wide = girth(s, n, i);
      const edge = own ? 1.5 : 1;
      pen.globalAlpha = before * (own ? 0.9 : small ? 0.15 : 0.45);
      pen.fillStyle = ink.residual;
      pen.fillRect(centre - wide / 2 - edge, top, wide + 2 * edge, tall);
      if (small && !own) continue; // too narrow for a texture: its width says how long the vector is
      pen.globalAlpha = before;
      pen.fillStyle = ink.surface;
      pen.fillRect(centre - wide / 2, top, wide, tall);
      pen.globalAlpha = before * (own ? 0.95 : 0.62);
      stages.draw(pen, n, i, centre - wide / 2, top, wide, tall);
    }
  }
  pen.globalAlpha = before;
}

/** Where the MLP widens: a swelling around each river, gold where neurons fire. */
export function swellings(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, alpha: number): void {
  const { camera, neurons } = s;
  if (alpha <= 0) return;
  const before = pen.globalAlpha;
  const room = camera.sx * 0.92;
  for (let n = 0; n < s.world.neurons.length; n++) {
    const { station, part } = s.world.neurons[n]!;
    const [top, bottom] = [camera.y(part.y + part.h), camera.y(part.y)];
    if (top > s.height || bottom < 0 || !part.h) continue;
    const middle = camera.y(station.y + station.h / 2);
    for (let i = 0; i < s.count; i++) {
      const centre = camera.x(i + 0.5);
      if (centre < -room || centre > s.width + room) continue;
      const share = neurons && neurons.longest[n] ? neurons.length(n, i) / neurons.longest[n]! : 0.5;
      const half = Math.min(room, Math.max(10, Math.min(110, room) * (0.6 + 0.4 * share))) / 2;
      pen.globalAlpha = before * alpha * (i === s.column ? 1 : 0.8);
      pen.fillStyle = ink['neuron-soft'];
      pen.strokeStyle = ink.neuron;
      pen.lineWidth = i === s.column ? 1.2 : 0.6;
      if (camera.sx < SMALL && i !== s.column) {
        pen.globalAlpha = before * alpha * (0.2 + 0.5 * share);
        pen.fillStyle = ink.neuron;
        pen.fillRect(centre - half * 0.7, middle - 1.5, half * 1.4, 3);
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
      if (!neurons || neurons.index(s.world.neurons[n]!.name) !== n) continue;
      // The neurons themselves, those that fire as gold marks on the widest line.
      pen.fillStyle = ink.neuron;
      const { cells } = neurons;
      const most = neurons.most[n]! || 1;
      const tall = Math.min(16, (bottom - top) * 0.4);
      for (let j = 0; j < cells; j++) {
        const fires = neurons.cell(n, i, j) / most;
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
  const shown = s.over && s.over.column >= 0 ? s.over.column : s.column;
  const apart = s.byHead && shown === s.column;
  for (let pass = 0; pass < 2; pass++)
    for (const { look, q, k, weight } of s.arcs) {
      if ((q === shown) !== (pass === 1) || (apart && pass)) continue;
      const { part } = s.world.looks[look]!;
      if (s.camera.y(part.y) < 0 || s.camera.y(part.y + part.h) > s.height) continue;
      pen.globalAlpha = before * alpha * (pass ? Math.min(0.95, 0.4 + weight) : 0.06 + 0.34 * weight);
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

/** Where the names and the words stand, over all that moves: left of `left`, and below `foot`. */
export function edges(s: Scene): { left: number; foot: number } {
  return { left: s.margin('machine').left - 6, foot: Math.min(s.camera.y(0), s.height - (s.camera.sx < 46 ? 58 : 30)) };
}

/** The words at the bottom: the tokens, each the foot of a column; and at the top what is expected after each. */
export function words(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const leaning = camera.sx < 46;
  const { foot } = edges(s);
  pen.font = `12.5px ${ink.mono}`;
  pen.textBaseline = 'middle';
  pen.fillStyle = ink.paper;
  pen.globalAlpha = 0.9;
  pen.fillRect(0, foot, s.width, s.height - foot);
  pen.globalAlpha = 1;
  const every = Math.max(1, Math.ceil(15 / camera.sx));
  const { left } = s.margin('machine');
  for (let i = 0; i < s.count; i++) {
    let x = camera.x(i + 0.5);
    const own = i === s.column;
    // Of a column wider than the picture the name stays in sight.
    if (own && camera.sx > s.width * 0.5 && camera.x(i) < s.width && camera.x(i + 1) > 0) x = Math.max(left + 60, Math.min(s.width - 70, x));
    if (x < left - 12 || x > s.width + 40) continue;
    if (!own && (i % every || (every > 1 && Math.abs(i - s.column) < every))) continue;
    const gone = s.alone && i > s.column;
    const word = visible(s.tokens[s.first + i]!);
    pen.globalAlpha = gone ? 0.35 : 1;
    pen.fillStyle = ink.token;
    pen.font = `${own ? 700 : 400} ${own ? 13 : 12.5}px ${ink.mono}`;
    if (leaning) {
      pen.save();
      pen.translate(x + 3, foot + 6);
      pen.rotate(-0.85);
      pen.textAlign = 'right';
      pen.fillText(fit(pen, word, 66), 0, 4);
      pen.restore();
    } else {
      const room = Math.min(camera.sx - 6, 220);
      const shown = fit(pen, word, room - 10);
      const wide = Math.min(room, pen.measureText(shown).width + 14);
      pen.fillStyle = own ? ink.token : ink['token-soft'];
      pen.beginPath();
      pen.roundRect(x - wide / 2, foot + 3, wide, 22, 6);
      pen.fill();
      pen.textAlign = 'center';
      pen.fillStyle = own ? ink.surface : ink.token;
      pen.fillText(shown, x, foot + 14.5);
    }
  }
  pen.globalAlpha = 1;
}

/** The chances of the next word, above the column they belong to; and the way round, on which it comes back as input. */
export function ending(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const station = s.world.stations.find((one) => one.operation === 'choose');
  if (!station || !s.choice) return;
  const top = camera.y(station.y + station.h);
  const high = station.h * camera.sy;
  if (top > s.height || top + high < 0) return;
  const alpha = pen.globalAlpha;
  const rows = Math.max(1, Math.min(s.choice.words.length, Math.floor(Math.min(high, 200) / 15)));
  const wide = Math.min(s.narrow() ? 190 : 230, s.width * 0.6);
  const centre = camera.x(s.column + 0.5);
  const edge = s.margin('machine');
  const left = Math.max(edge.left + 4, Math.min(s.width - edge.right - wide - 6, centre - wide / 2));
  const row = Math.min(20, high / rows);
  const most = Math.max(0.4, s.choice.shares[0]!);
  const y0 = top + high - rows * row;
  // From the top of the river to the bars.
  pen.strokeStyle = ink.residual;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(centre, camera.y(station.y) + 1);
  pen.lineTo(centre, y0 + rows * row);
  pen.stroke();
  pen.textBaseline = 'middle';
  for (let i = 0; i < rows; i++) {
    const y = y0 + i * row;
    const share = s.choice.shares[i]!;
    const bar = ((wide - 128) * share) / most;
    pen.globalAlpha = alpha * (i ? 0.75 : 1);
    pen.fillStyle = ink.token;
    pen.font = `${i ? 400 : 700} 12.5px ${ink.mono}`;
    pen.textAlign = 'right';
    pen.fillText(fit(pen, visible(s.choice.words[i]!), 76), left + 80, y + row / 2);
    pen.fillStyle = ink.ink;
    pen.fillRect(left + 86, y + row * 0.22, Math.max(1.5, bar), row * 0.56);
    pen.font = `${i ? 400 : 650} 12px ${ink.sans}`;
    pen.textAlign = 'left';
    pen.fillStyle = ink.ink;
    pen.fillText(percent(share), left + 91 + Math.max(1.5, bar), y + row / 2);
  }
  pen.globalAlpha = alpha;
  round[0] = left + 96 + Math.max(1.5, ((wide - 128) * s.choice.shares[0]!) / most) + 46;
  round[1] = y0 + row / 2;
}

/** The corners of the way round, for the line and for what travels on it. */
export const round = new Float64Array(10);

export function loop(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const word = s.choice?.words[0];
  if (!word || s.slots === s.count || s.column !== s.count - 1) return;
  const station = s.world.stations.find((one) => one.operation === 'choose');
  if (!station || camera.y(station.y) < 0) return;
  const right = s.width - 12;
  const next = camera.x(s.count + 0.5);
  const foot = edges(s).foot + 14.5;
  const [x, y] = [round[0]!, round[1]!];
  round[2] = round[4] = right;
  round[3] = y;
  round[5] = round[7] = round[9] = foot;
  round[6] = round[8] = next;
  const wide = Math.max(16, Math.min(90, camera.sx - 6));
  pen.strokeStyle = ink.token;
  pen.fillStyle = ink.token;
  pen.lineWidth = 1.5;
  pen.setLineDash(DOTS);
  pen.lineCap = 'round';
  pen.beginPath();
  pen.moveTo(x, y);
  pen.arcTo(right, y, right, foot, 12);
  pen.arcTo(right, foot, next, foot, 12);
  pen.lineTo(next + wide / 2 + 6, foot);
  pen.stroke();
  pen.beginPath();
  pen.roundRect(next - wide / 2, foot - 11, wide, 22, 6);
  pen.stroke();
  pen.setLineDash(NO_DOTS);
  pen.beginPath();
  pen.moveTo(next + wide / 2 + 1, foot);
  pen.lineTo(next + wide / 2 + 8, foot - 4.5);
  pen.lineTo(next + wide / 2 + 8, foot + 4.5);
  pen.fill();
  if (wide < 30 || (s.stop > 0 && s.station(s.stop)?.operation === 'choose' && s.way < 1)) return;
  pen.font = `12.5px ${ink.mono}`;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillText(fit(pen, visible(word), wide - 8), next, foot + 0.5);
}
const DOTS = [2, 4];
const NO_DOTS: number[] = [];

/** What is expected after each token, above its column. */
export function guesses(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const station = s.world.stations.find((one) => one.operation === 'rank');
  if (!station || !s.expected || s.camera.sx < 40) return;
  const y = s.camera.y(station.y + station.h / 2);
  if (y < 0 || y > s.height) return;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  for (let i = 0; i < s.count; i++) {
    const own = i === s.column;
    pen.font = `${own ? 700 : 400} 11.5px ${ink.mono}`;
    pen.fillStyle = own ? ink.token : ink['ink-3'];
    pen.fillText(fit(pen, visible(s.expected.words[i]!), s.camera.sx - 6), s.camera.x(i + 0.5), y);
  }
}

/** The names of the floors, at the left edge; inside a block those of its steps. */
export function names(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const wide = edges(s).left;
  pen.fillStyle = ink.paper;
  pen.fillRect(0, 0, wide, s.height);
  const here = s.station(s.stop);
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  const table = s.opened();
  if (table) {
    const each = (table.h * camera.sy) / s.count;
    pen.font = `12.5px ${ink.mono}`;
    pen.textAlign = 'right';
    for (let q = 0; q < s.count; q++) {
      const y = camera.y(table.y + table.h) + (q + 0.5) * each;
      if (each < 11 || y < 8 || y > s.height - 36) continue;
      pen.font = `${q === s.column ? 700 : 400} 12.5px ${ink.mono}`;
      pen.fillStyle = ink.token;
      pen.fillText(fit(pen, visible(s.tokens[s.first + q]!), wide - 20), wide - 6, y);
    }
    return;
  }
  let last = Infinity;
  const put = (words: string, y: number, bold: boolean, colour: string, gap: number): void => {
    if (y < 8 || y > s.height - 20 || last - y < gap) return;
    last = y;
    pen.font = `${bold ? 700 : 400} 12px ${ink.sans}`;
    pen.fillStyle = colour;
    pen.fillText(fit(pen, words, s.narrow() ? wide - 12 : wide - 28), 10, y);
    if (!bold) return;
    pen.fillStyle = ink.accent;
    pen.fillRect(1, y - 7, 3, 14);
  };
  for (const floor of s.world.floors) {
    const open = ramp(floor.h * camera.sy, 170, 240);
    if (floor.kind === 'block' && open < 0.5) {
      const inside = here?.layer === floor.layer;
      const y = camera.y(floor.y + floor.h / 2);
      put(t('walk.block', { n: floor.layer }), y, inside && s.stop > 0, inside && s.stop > 0 ? ink.accent : ink['ink-2'], 15);
      continue;
    }
    for (const station of floor.stations) {
      const bold = station === here;
      const tall = station.h * camera.sy;
      if ((tall < 13 && !bold) || camera.y(station.y) < 8 || camera.y(station.y + station.h) > s.height - 30) continue;
      let y = camera.y(station.y + station.h / 2);
      if (tall > s.height * 0.7) y = Math.max(20, Math.min(s.height - 60, y));
      put(title(s.map.steps[station.step]!), y, bold, bold ? ink.accent : ink['ink-2'], 12);
    }
  }
  // Inside a block the parts are named along the edge, where there is room.
  for (const part of s.narrow() ? [] : s.world.parts) {
    const high = part.h * camera.sy;
    if (high < 120) continue;
    const top = Math.max(0, camera.y(part.y + part.h));
    const bottom = Math.min(s.height - 40, camera.y(part.y));
    if (bottom - top < 70) continue;
    pen.save();
    pen.translate(wide - 8, (top + bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = 'center';
    pen.font = `650 11px ${ink.sans}`;
    pen.fillStyle = ink[groupInk(part.group)];
    pen.fillText(`${groupName(part.group)} · ${t('walk.block', { n: part.layer })}`, 0, 0);
    pen.restore();
  }
}
