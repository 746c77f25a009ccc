/** A pen that writes SVG where a canvas's would paint: as much of one as the scene uses. What it draws can be printed at any size. */

import { el, escape } from '../../../lib/svg';

/** Pictures in memory that are drawn from, each in the file once. */
export class Pictures {
  #ids = new Map<CanvasImageSource, string>();
  #all: string[] = [];

  use(source: HTMLCanvasElement): string {
    let id = this.#ids.get(source);
    if (id === undefined) {
      id = `p${this.#ids.size}`;
      this.#ids.set(source, id);
      this.#all.push(el('image', { id, width: source.width, height: source.height, href: source.toDataURL(), style: 'image-rendering:pixelated' }));
    }
    return id;
  }
  get defs(): string {
    return this.#all.join('');
  }
}

interface Look {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  font: string;
  textAlign: string;
  textBaseline: string;
  globalAlpha: number;
  lineCap: string;
  matrix: DOMMatrix;
  dash: number[];
}

const ANCHOR: Record<string, string> = { center: 'middle', right: 'end', end: 'end' };
const BASELINE: Record<string, string> = { middle: 'central', top: 'text-before-edge', hanging: 'text-before-edge', bottom: 'text-after-edge' };
const short = (value: number): string => String(Math.round(value * 100) / 100);
const ruler = document.createElement('canvas').getContext('2d')!;

export class SvgPen implements Look {
  fillStyle = '#000';
  strokeStyle = '#000';
  lineWidth = 1;
  font = '10px sans-serif';
  textAlign = 'start';
  textBaseline = 'alphabetic';
  globalAlpha = 1;
  lineCap = 'butt';
  imageSmoothingEnabled = false;
  matrix = new DOMMatrix();
  dash: number[] = [];
  readonly #out: string[] = [];
  readonly #saved: Look[] = [];
  #path = '';
  #at = { x: 0, y: 0 };

  constructor(readonly pictures: Pictures) {}

  /** For what paints: it asks of a pen no more than is here. */
  get pen(): CanvasRenderingContext2D {
    return this as unknown as CanvasRenderingContext2D;
  }
  get written(): string {
    return this.#out.join('');
  }

  #put(name: string, attributes: Record<string, string | number | undefined>, ...children: string[]): void {
    if (this.globalAlpha <= 0.001) return;
    const { a, b, c, d, e, f, isIdentity } = this.matrix;
    const transform = isIdentity ? undefined : `matrix(${[a, b, c, d, e, f].map(short).join(' ')})`;
    this.#out.push(el(name, { ...attributes, opacity: this.globalAlpha < 1 ? short(this.globalAlpha) : undefined, transform }, ...children));
  }
  #line(): Record<string, string | undefined> {
    return { fill: 'none', stroke: this.strokeStyle, 'stroke-width': short(this.lineWidth), 'stroke-linecap': this.lineCap === 'butt' ? undefined : this.lineCap, 'stroke-dasharray': this.dash.length ? this.dash.map(short).join(' ') : undefined };
  }

  save(): void {
    const { fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, lineCap, dash } = this;
    this.#saved.push({ fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline, globalAlpha, lineCap, dash, matrix: DOMMatrix.fromMatrix(this.matrix) });
  }
  restore(): void {
    Object.assign(this, this.#saved.pop());
  }
  translate(x: number, y: number): void {
    this.matrix.translateSelf(x, y);
  }
  rotate(angle: number): void {
    this.matrix.rotateSelf((angle * 180) / Math.PI);
  }
  setLineDash(dash: number[]): void {
    this.dash = dash;
  }

  beginPath(): void {
    this.#path = '';
  }
  #go(sign: string, ...points: number[]): void {
    this.#path += `${sign}${points.map(short).join(' ')}`;
    this.#at = { x: points.at(-2)!, y: points.at(-1)! };
  }
  moveTo(x: number, y: number): void {
    this.#go('M', x, y);
  }
  lineTo(x: number, y: number): void {
    this.#go(this.#path ? 'L' : 'M', x, y);
  }
  bezierCurveTo(...points: [number, number, number, number, number, number]): void {
    this.#go('C', ...points);
  }
  quadraticCurveTo(...points: [number, number, number, number]): void {
    this.#go('Q', ...points);
  }
  closePath(): void {
    this.#path += 'Z';
  }
  arc(x: number, y: number, r: number, from: number, to: number, back = false): void {
    const point = (angle: number): [number, number] => [x + r * Math.cos(angle), y + r * Math.sin(angle)];
    this.#go(this.#path ? 'L' : 'M', ...point(from));
    const turn = back ? from - to : to - from;
    // A whole circle is two halves: an arc that ends where it begins is none.
    const stops = turn >= 2 * Math.PI - 1e-6 ? [from + Math.PI, from + 2 * Math.PI] : [to];
    for (const stop of stops) this.#arc(r, stops.length === 1 && turn > Math.PI, !back, ...point(stop));
  }
  #arc(r: number, large: boolean, clockwise: boolean, x: number, y: number): void {
    this.#path += `A${short(r)} ${short(r)} 0 ${large ? 1 : 0} ${clockwise ? 1 : 0} ${short(x)} ${short(y)}`;
    this.#at = { x, y };
  }
  /** A rounded corner: towards the first point, around it, on towards the second. */
  arcTo(x1: number, y1: number, x2: number, y2: number, r: number): void {
    const unit = (x: number, y: number): [number, number] => [x / (Math.hypot(x, y) || 1), y / (Math.hypot(x, y) || 1)];
    const [ax, ay] = unit(this.#at.x - x1, this.#at.y - y1);
    const [bx, by] = unit(x2 - x1, y2 - y1);
    const half = Math.acos(Math.max(-1, Math.min(1, ax * bx + ay * by))) / 2;
    const away = r / Math.tan(half);
    this.lineTo(x1 + ax * away, y1 + ay * away);
    this.#arc(r, false, ax * by - ay * bx < 0, x1 + bx * away, y1 + by * away);
  }
  roundRect(x: number, y: number, w: number, h: number, r: number | number[] = 0): void {
    const [a = 0, b = a, c = a, d = b] = (Array.isArray(r) ? r : [r]).map((one) => Math.max(0, Math.min(one, w / 2, h / 2)));
    this.#go('M', x + a, y);
    this.#go('L', x + w - b, y);
    this.#arc(b, false, true, x + w, y + b);
    this.#go('L', x + w, y + h - c);
    this.#arc(c, false, true, x + w - c, y + h);
    this.#go('L', x + d, y + h);
    this.#arc(d, false, true, x, y + h - d);
    this.#go('L', x, y + a);
    this.#arc(a, false, true, x + a, y);
    this.closePath();
  }
  fill(): void {
    if (this.#path) this.#put('path', { d: this.#path, fill: this.fillStyle });
  }
  stroke(): void {
    if (this.#path) this.#put('path', { d: this.#path, ...this.#line() });
  }
  #box(x: number, y: number, w: number, h: number): Record<string, string> {
    return { x: short(Math.min(x, x + w)), y: short(Math.min(y, y + h)), width: short(Math.abs(w)), height: short(Math.abs(h)) };
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    if (w && h) this.#put('rect', { ...this.#box(x, y, w, h), fill: this.fillStyle });
  }
  strokeRect(x: number, y: number, w: number, h: number): void {
    this.#put('rect', { ...this.#box(x, y, w, h), ...this.#line() });
  }
  measureText(words: string): TextMetrics {
    ruler.font = this.font;
    return ruler.measureText(words);
  }
  fillText(words: string, x: number, y: number): void {
    if (words) this.#put('text', { x: short(x), y: short(y), fill: this.fillStyle, style: `font:${this.font};white-space:pre`, 'text-anchor': ANCHOR[this.textAlign], 'dominant-baseline': BASELINE[this.textBaseline] }, escape(words));
  }
  /** A part of a picture, in a box: the picture once, seen through a window. */
  drawImage(source: HTMLCanvasElement, ...at: number[]): void {
    const [sx, sy, sw, sh, x, y, w, h] = at.length === 8 ? at : [0, 0, source.width, source.height, at[0], at[1], at[2] ?? source.width, at[3] ?? source.height];
    const href = `#${this.pictures.use(source)}`;
    this.#put('svg', { ...this.#box(x!, y!, w!, h!), viewBox: [sx, sy, sw, sh].map((one) => short(one!)).join(' '), preserveAspectRatio: 'none' }, el('use', { href }));
  }
}
