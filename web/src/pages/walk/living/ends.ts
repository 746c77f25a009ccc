/** What stands at the ends of the machine and at its edge: the words below, what is expected above, the way round, the names of the floors. */

import { percent } from '../../../lib/format';
import { visible } from '../../../lib/token';
import { t } from '../../../state/preferences.svelte';
import { groupName, title } from '../steps';
import { fit, groupInk, ramp, type Ink } from './ink';
import type { Floor } from './layout';
import type { Scene } from './scene';

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
  const slim = s.slim >= 1;
  if (slim) positions(s, pen, ink, foot, left);
  for (let i = s.low; i < s.high; i++) {
    let x = camera.x(i + 0.5);
    const own = i === s.column;
    // Of a column wider than the picture the name stays in sight.
    if (own && camera.sx > s.width * 0.5 && camera.x(i) < s.width && camera.x(i + 1) > 0) x = Math.max(left + 60, Math.min(s.width - 70, x));
    if (x < left - 12 || x > s.width + 40) continue;
    if (!own && (slim || i % every || (every > 1 && Math.abs(i - s.column) < every))) continue;
    const gone = s.alone && (i > s.column || !s.begun);
    const word = visible(s.tokens[i]!);
    pen.globalAlpha = gone ? s.hint : 1;
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

/** Where tokens are too narrow for their words: how many there are before, in round numbers. */
function positions(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, foot: number, left: number): void {
  const { camera } = s;
  const least = 64 / camera.sx;
  const step = [1, 2, 5, 10].map((one) => one * 10 ** Math.floor(Math.log10(least))).find((one) => one >= least)!;
  pen.font = `11.5px ${ink.sans}`;
  pen.textAlign = 'center';
  pen.fillStyle = ink['ink-3'];
  for (let i = Math.ceil(s.low / step) * step; i < s.high; i += step) {
    const x = camera.x(i + 0.5);
    if (x < left || Math.abs(x - camera.x(s.column + 0.5)) < 44) continue;
    pen.fillRect(x - 0.5, foot + 2, 1, 5);
    pen.fillText(String(i), x, foot + 16);
  }
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
  const { comes } = s;
  if (!comes) return;
  const station = s.world.stations.find((one) => one.operation === 'choose');
  if (!station || camera.y(station.y) < 0) return;
  const right = s.width - 12;
  const next = camera.x(comes.to + 0.5);
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
  pen.fillText(fit(pen, visible(comes.word), wide - 8), next, foot + 0.5);
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
  for (let i = s.low; i < s.high; i++) {
    const next = s.next(i);
    if (!next) continue;
    const own = i === s.column;
    pen.font = `${own ? 700 : 400} 11.5px ${ink.mono}`;
    pen.fillStyle = own ? ink.token : ink['ink-3'];
    pen.fillText(fit(pen, visible(next.word), s.camera.sx - 6), s.camera.x(i + 0.5), y);
  }
}

/** A floor is called by its number; one of a single step by that. */
function floorName(s: Scene, floor: Floor): string {
  const [only, more] = floor.stations;
  if (!only || more) return t('walk.block', { n: floor.layer });
  return title(s.map.steps[only.step]!) + (s.map.layers > 1 ? ` ${floor.layer}` : '');
}

/** The names of the floors, at the left edge; inside a block those of its steps. */
export function names(s: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { camera } = s;
  const wide = edges(s).left;
  pen.fillStyle = ink.paper;
  pen.fillRect(0, 0, wide, s.height);
  const here = s.active ? s.station(s.stop) : null;
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  const table = s.opened();
  if (table) {
    const { first, count } = s.lines;
    const each = (table.h * camera.sy) / count;
    pen.font = `12.5px ${ink.mono}`;
    pen.textAlign = 'right';
    for (let q = first; q < first + count; q++) {
      const y = camera.y(table.y + table.h) + (q - first + 0.5) * each;
      if (each < 11 || y < 8 || y > s.height - 36) continue;
      pen.font = `${q === s.column ? 700 : 400} 12.5px ${ink.mono}`;
      pen.fillStyle = ink.token;
      pen.fillText(fit(pen, visible(s.tokens[q]!), wide - 20), wide - 6, y);
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
    const open = ramp(floor.h * camera.sy, 170, 240) * ramp(camera.sx, 7, 12);
    if (floor.kind === 'block' && open < 0.5) {
      const inside = here?.layer === floor.layer;
      const y = camera.y(floor.y + floor.h / 2);
      put(floorName(s, floor), y, inside && s.stop > 0, inside && s.stop > 0 ? ink.accent : ink['ink-2'], 15);
      continue;
    }
    for (const station of floor.stations) {
      const bold = station === here;
      const tall = station.h * camera.sy;
      if ((tall < 13 && !bold) || camera.y(station.y) < 8 || camera.y(station.y + station.h) > s.height - 30) continue;
      let y = camera.y(station.y + station.h / 2);
      if (tall > s.height * 0.7) y = Math.max(20, Math.min(s.height - 60, y));
      put(floor.kind === 'block' ? (floor.stations.length > 1 ? title(s.map.steps[station.step]!) : floorName(s, floor)) : title(s.map.steps[station.step]!), y, bold, bold ? ink.accent : ink['ink-2'], 12);
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
