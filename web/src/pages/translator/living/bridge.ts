/** What leads over from the encoder to the decoder: the chosen token's attention to the source, and the last hidden state. */

import { edges } from '../../walk/living/ends';
import { headInk } from '../../walk/living/machine';
import type { Ink } from '../../walk/living/ink';
import type { StackScene } from './stack';

export interface Point {
  x: number;
  y: number;
}

/** So much of what is written at a place of the decoder comes from a token of the source. */
export interface Link {
  /** Which of the decoder's tables of attention to the source. */
  look: number;
  /** Null: the mean over the heads. */
  head: number | null;
  k: number;
  weight: number;
}

export interface Bridge {
  encoder: StackScene;
  decoder: StackScene;
  /** Where each picture lies in the one that is drawn on. */
  at: { encoder: Point; decoder: Point };
  links: Link[];
  heads: number;
  /** Hidden states that go over, by the name of the place where they are made. */
  over: string[];
  /** Whether something is being written. */
  writing: boolean;
  /** Whether the last hidden state is all that goes over. */
  alone: boolean;
}

/** Weights from which a curve is drawn. */
export const LEAST = 0.02;

type Curve = [Point, Point, Point, Point];

/** From the top of a token of the source to the decoder's row: beside it from the left, above it from below. */
function curve(b: Bridge, k: number, look: number, aside: number): Curve {
  const { encoder: e, decoder: d, at } = b;
  const { part } = d.world.across[look]!;
  const from = { x: at.encoder.x + e.camera.x(k + 0.5) + aside, y: at.encoder.y + Math.max(e.above, e.camera.y(e.world.high)) };
  const to = { x: at.decoder.x + d.camera.x(d.column + 0.5), y: at.decoder.y + d.camera.y(part.y + part.h / 2) };
  if (at.decoder.x > at.encoder.x) {
    const wide = to.x - from.x;
    return [from, { x: from.x + wide * 0.1, y: at.encoder.y + 2 }, { x: to.x - wide * 0.35, y: to.y }, to];
  }
  const high = from.y - to.y;
  return [from, { x: from.x, y: from.y - high * 0.5 }, { x: to.x, y: to.y + high * 0.3 }, to];
}
const between = ([a, b, c, d]: Curve, f: number, of: 'x' | 'y'): number => (1 - f) ** 3 * a[of] + 3 * (1 - f) ** 2 * f * b[of] + 3 * (1 - f) * f * f * c[of] + f ** 3 * d[of];

/** How far the decoder is with a part: 0 before it, 1 after. */
function done(d: StackScene, look: number): number {
  const { part } = d.world.across[look]!;
  return Math.max(0, Math.min(1, (d.tide - part.y) / part.h));
}

export function drawBridge(b: Bridge, pen: CanvasRenderingContext2D, ink: Ink, dark: boolean): void {
  over(b, pen, ink);
  if (!b.writing) return;
  pen.lineCap = 'round';
  const thick = 9;
  for (const { look, head, k, weight } of b.links) {
    const { part } = b.decoder.world.across[look]!;
    const y = b.decoder.camera.y(part.y + part.h / 2);
    if (y < 0 || y > edges(b.decoder).foot) continue; // out of sight
    const way = curve(b, k, look, head === null ? 0 : ((head + 0.5) / b.heads - 0.5) * Math.min(14, b.encoder.camera.sx * 0.4));
    const f = done(b.decoder, look);
    pen.strokeStyle = pen.fillStyle = head === null ? ink.query : headInk(head, b.heads, dark);
    pen.globalAlpha = (f > 0 ? 0.25 + 0.7 * weight : 0.1) * (b.decoder.world.across.length > 2 ? 0.8 : 1);
    pen.lineWidth = Math.max(1, thick * weight);
    pen.beginPath();
    pen.moveTo(way[0].x, way[0].y);
    pen.bezierCurveTo(way[1].x, way[1].y, way[2].x, way[2].y, way[3].x, way[3].y);
    pen.stroke();
    if (f <= 0 || f >= 1 || b.decoder.way >= 1) continue;
    // It is under way: as much of it as the share says.
    pen.globalAlpha = 0.95;
    pen.beginPath();
    pen.arc(between(way, f, 'x'), between(way, f, 'y'), 2.5 + 6 * Math.sqrt(weight), 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
}

/** The encoder's last hidden state is where the decoder begins. */
function over(b: Bridge, pen: CanvasRenderingContext2D, ink: Ink): void {
  const { encoder: e, decoder: d, at } = b;
  for (const name of b.over) {
    const from = { x: at.encoder.x + e.camera.x(e.count - 0.5), y: at.encoder.y + e.heightOf(name) };
    const to = { x: at.decoder.x + d.camera.x(0.5) - Math.min(16, d.camera.sx * 0.25), y: at.decoder.y + d.heightOf(name) };
    const beside = at.decoder.x > at.encoder.x;
    pen.strokeStyle = pen.fillStyle = b.writing ? ink.accent : ink['line-strong'];
    pen.globalAlpha = b.writing ? (b.alone ? 1 : 0.75) : 0.6;
    pen.lineWidth = b.alone ? 4 : 2;
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    if (beside) pen.bezierCurveTo(from.x + 50, from.y, to.x - 60, to.y, to.x - 5, to.y);
    else pen.bezierCurveTo(from.x + 24, from.y - 60, to.x - 60, to.y + 60, to.x - 5, to.y);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(to.x + 2, to.y);
    pen.lineTo(to.x - 7, to.y - 5);
    pen.lineTo(to.x - 7, to.y + 5);
    pen.fill();
  }
  pen.globalAlpha = 1;
}
