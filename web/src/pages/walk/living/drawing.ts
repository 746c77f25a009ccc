/** The picture as SVG: as it stands, or a stretch of it that moves. */

import { el, picture } from '../../../lib/svg';
import type { Stage } from './stage';
import { Pictures, SvgPen } from './svgpen';

/** A part of the picture, and how strongly it is seen. */
export interface Part {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  alpha: number;
}
/** What stays, in which strength its parts are seen, what moves behind the names, the names, and what moves over them. */
export interface Pieces {
  /** Says which still picture it is. */
  key: string;
  still: string;
  front: string;
  behind: string;
  over: string;
  parts: Part[];
}

/** Drawings of one scene: what is alike in several of them is written once. */
class Sheets {
  readonly pictures = new Pictures();
  #defs = new Map<string, string>();

  #once(written: string): string {
    let id = this.#defs.get(written);
    if (id === undefined) this.#defs.set(written, (id = `d${this.#defs.size}`));
    return `#${id}`;
  }
  drawn({ still, front, behind, over, parts }: Pieces): string {
    const seen = parts
      .filter(({ x0, x1, y0, y1 }) => x1 > x0 && y1 > y0)
      .map(({ x0, x1, y0, y1, alpha }) => {
        const box = [x0, y0, x1 - x0, y1 - y0].map((one) => Math.round(one * 100) / 100);
        const [x, y, width, height] = box as [number, number, number, number];
        return el('svg', { x, y, width, height, viewBox: box.join(' '), opacity: alpha < 1 ? Math.round(alpha * 1000) / 1000 : undefined }, el('use', { href: this.#once(still) }));
      });
    return seen.join('') + behind + el('use', { href: this.#once(front) }) + over;
  }
  get defs(): string {
    return el('defs', {}, this.pictures.defs, ...[...this.#defs].map(([written, id]) => el('g', { id }, written)));
  }
}

/** The picture as it stands. */
export function drawing(stage: Stage, title: string): string {
  const sheets = new Sheets();
  const drawn = sheets.drawn(stage.pieces(sheets.pictures));
  return picture(stage.scene.width, stage.scene.height, title, sheets.defs, drawn);
}

/** Several pictures in one, each at its place, and what is drawn over all of them. */
export function drawingOf(parts: { stage: Stage; x: number; y: number }[], width: number, height: number, title: string, over: (pen: CanvasRenderingContext2D) => void): string {
  const sheets = new Sheets();
  const drawn = parts.map(({ stage, x, y }) => el('svg', { x, y, width: stage.scene.width, height: stage.scene.height }, sheets.drawn(stage.pieces(sheets.pictures))));
  const pen = new SvgPen(sheets.pictures);
  over(pen.pen);
  return picture(width, height, title, sheets.defs, ...drawn, pen.written);
}

const EVERY = 100; // milliseconds from one look to the next
const LONGEST = 900; // looks: a minute and a half

/** A stretch of the picture as a drawing that moves: looked at some times a second, shown one look after the other, over and over. */
export class MovingDrawing {
  readonly #sheets = new Sheets();
  readonly #began = performance.now();
  readonly #timer: ReturnType<typeof setInterval>;
  /** Each with the milliseconds at which it begins, whole ones: where one ends the next begins, to the digit. */
  readonly #looks: { drawn: string; at: number }[] = [];
  #last: Pieces | null = null;

  constructor(
    readonly stage: Stage,
    readonly title: string,
  ) {
    this.#look();
    this.#timer = setInterval(() => this.#look(), EVERY);
  }

  #look(): void {
    this.#last = this.stage.pieces(this.#sheets.pictures, this.#last);
    const drawn = this.#sheets.drawn(this.#last);
    if (drawn === this.#looks.at(-1)?.drawn) return; // stays for longer
    this.#looks.push({ drawn, at: Math.round(performance.now() - this.#began) });
    if (this.#looks.length >= LONGEST) clearInterval(this.#timer);
  }

  end(): Promise<{ film: Blob; ending: string }> {
    clearInterval(this.#timer);
    const { scene } = this.stage;
    const looks = this.#looks;
    const whole = Math.max(Math.round(performance.now() - this.#began), looks.at(-1)!.at + EVERY);
    const short = (milliseconds: number): string => `${milliseconds / 1000}s`;
    // The first look is there without a clock, too: for what prints or cannot move.
    const frames = looks.map(({ drawn, at }, n) => {
      const until = looks[n + 1]?.at ?? whole;
      if (looks.length === 1) return drawn;
      const times = n ? { to: 'inline', begin: `clock.begin+${short(at)}`, dur: short(until - at) } : { to: 'none', begin: `clock.begin+${short(until)}`, dur: short(whole - until) };
      return el('g', { display: n ? 'none' : undefined }, el('set', { attributeName: 'display', ...times }), drawn);
    });
    const clock = el('rect', { width: 0, height: 0 }, el('animate', { id: 'clock', attributeName: 'x', from: 0, to: 0, begin: '0s;clock.end', dur: short(whole) }));
    const written = picture(scene.width, scene.height, this.title, this.#sheets.defs, clock, ...frames);
    return Promise.resolve({ film: new Blob([written], { type: 'image/svg+xml' }), ending: 'svg' });
  }
}
