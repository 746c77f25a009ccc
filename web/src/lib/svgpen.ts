/** A canvas's pen that writes SVG: what painters draw on the screen, they draw on paper with the same calls. */

import { el, escape } from './svg';

type Matrix = [number, number, number, number, number, number];
const PLAIN: Matrix = [1, 0, 0, 1, 0, 0];
const LINES: Record<string, string> = { middle: 'central', top: 'text-before-edge', bottom: 'text-after-edge' };
const ANCHORS: Record<string, string> = { center: 'middle', right: 'end', end: 'end' };
const round = (value: number): string => String(Math.round(100 * value) / 100);

export class SvgPen {
  globalAlpha = 1;
  fillStyle = '#000';
  strokeStyle = '#000';
  lineWidth = 1;
  lineCap = 'butt';
  font = '12px sans-serif';
  textAlign = 'left';
  textBaseline = 'alphabetic';
  imageSmoothingEnabled = true;
  #out: string[] = [];
  #path = '';
  #at: [number, number] = [0, 0];
  #dash: number[] = [];
  #matrix: Matrix = [...PLAIN];
  #stack: { matrix: Matrix; alpha: number; fill: string; font: string; align: string }[] = [];
  #ruler = document.createElement('canvas').getContext('2d')!;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {}

  /** All that was drawn, on a ground of this colour. */
  done(title: string, ground: string): string {
    const { width, height } = this;
    const clip = el('clipPath', { id: 'page' }, el('rect', { width, height }));
    return el('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, width, height }, el('title', {}, escape(title)), el('defs', {}, clip), el('rect', { width, height, fill: ground }), el('g', { 'clip-path': 'url(#page)' }, ...this.#out));
  }

  #put(name: string, attributes: Record<string, string | number | undefined>, ...children: string[]): void {
    if (this.globalAlpha <= 0.004) return;
    const transform = this.#matrix.every((one, i) => one === PLAIN[i]) ? undefined : `matrix(${this.#matrix.map((one) => String(Math.round(1e4 * one) / 1e4)).join(' ')})`;
    this.#out.push(el(name, { ...attributes, opacity: this.globalAlpha < 0.995 ? round(this.globalAlpha) : undefined, transform }, ...children));
  }
  #lines(): Record<string, string | number | undefined> {
    return { fill: 'none', stroke: this.strokeStyle, 'stroke-width': round(this.lineWidth), 'stroke-linecap': this.lineCap === 'butt' ? undefined : this.lineCap, 'stroke-dasharray': this.#dash.length ? this.#dash.join(' ') : undefined };
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (width > 0 && height > 0) this.#put('rect', { x: round(x), y: round(y), width: round(width), height: round(height), fill: this.fillStyle });
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    if (width > 0 && height > 0) this.#put('rect', { x: round(x), y: round(y), width: round(width), height: round(height), ...this.#lines() });
  }
  clearRect(): void {
    // paper is clear
  }
  fillText(words: string, x: number, y: number): void {
    this.#put('text', { x: round(x), y: round(y), fill: this.fillStyle, style: `font:${this.font};white-space:pre`, 'text-anchor': ANCHORS[this.textAlign], 'dominant-baseline': LINES[this.textBaseline] }, escape(words));
  }
  measureText(words: string): TextMetrics {
    this.#ruler.font = this.font;
    return this.#ruler.measureText(words);
  }

  beginPath(): void {
    this.#path = '';
  }
  moveTo(x: number, y: number): void {
    this.#add('M', x, y);
  }
  lineTo(x: number, y: number): void {
    this.#add(this.#path ? 'L' : 'M', x, y);
  }
  bezierCurveTo(...points: [number, number, number, number, number, number]): void {
    this.#add('C', ...points);
  }
  quadraticCurveTo(...points: [number, number, number, number]): void {
    this.#add('Q', ...points);
  }
  /** A corner that is rounded: so far before it and after it. */
  arcTo(x1: number, y1: number, x2: number, y2: number, radius: number): void {
    const toward = (x: number, y: number): [number, number] => {
      const far = Math.hypot(x - x1, y - y1) || 1;
      const by = Math.min(radius, far) / far;
      return [x1 + (x - x1) * by, y1 + (y - y1) * by];
    };
    this.lineTo(...toward(...this.#at));
    this.quadraticCurveTo(x1, y1, ...toward(x2, y2));
  }
  arc(x: number, y: number, radius: number, from: number, to: number): void {
    const [x0, y0] = [x + radius * Math.cos(from), y + radius * Math.sin(from)];
    const half = (from + to) / 2;
    this.#add(this.#path ? 'L' : 'M', x0, y0);
    for (const angle of [half, to]) {
      const [x1, y1] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
      this.#path += `A${round(radius)} ${round(radius)} 0 0 1 ${round(x1)} ${round(y1)}`;
      this.#at = [x1, y1];
    }
  }
  roundRect(x: number, y: number, width: number, height: number, radius: number): void {
    const r = Math.max(0, Math.min(radius, width / 2, height / 2));
    const corner = `a${round(r)} ${round(r)} 0 0 1 `;
    this.#path += `M${round(x + r)} ${round(y)}h${round(width - 2 * r)}${corner}${round(r)} ${round(r)}v${round(height - 2 * r)}${corner}${round(-r)} ${round(r)}h${round(2 * r - width)}${corner}${round(-r)} ${round(-r)}v${round(2 * r - height)}${corner}${round(r)} ${round(-r)}Z`;
  }
  #add(sign: string, ...points: number[]): void {
    this.#path += sign + points.map(round).join(' ');
    this.#at = [points.at(-2)!, points.at(-1)!];
  }
  fill(): void {
    if (this.#path) this.#put('path', { d: this.#path, fill: this.fillStyle });
  }
  stroke(): void {
    if (this.#path) this.#put('path', { d: this.#path, ...this.#lines() });
  }
  setLineDash(dash: number[]): void {
    this.#dash = dash;
  }

  /** A part of another canvas, as a picture of its own: a vector's strip is a few pixels. */
  drawImage(source: HTMLCanvasElement, ...box: number[]): void {
    const [sx, sy, sw, sh, x, y, width, height] = box.length === 8 ? box : [0, 0, source.width, source.height, box[0]!, box[1]!, box[2] ?? source.width, box[3] ?? source.height];
    const part = document.createElement('canvas');
    part.width = Math.max(1, Math.round(sw!));
    part.height = Math.max(1, Math.round(sh!));
    part.getContext('2d')!.drawImage(source, sx!, sy!, sw!, sh!, 0, 0, part.width, part.height);
    this.#put('image', { href: part.toDataURL(), x: round(x!), y: round(y!), width: round(width!), height: round(height!), preserveAspectRatio: 'none', style: 'image-rendering:pixelated' });
  }

  save(): void {
    this.#stack.push({ matrix: [...this.#matrix], alpha: this.globalAlpha, fill: this.fillStyle, font: this.font, align: this.textAlign });
  }
  restore(): void {
    const last = this.#stack.pop();
    if (!last) return;
    this.#matrix = last.matrix;
    this.globalAlpha = last.alpha;
    this.fillStyle = last.fill;
    this.font = last.font;
    this.textAlign = last.align;
  }
  setTransform(...matrix: Matrix): void {
    this.#matrix = matrix;
  }
  translate(x: number, y: number): void {
    const [a, b, c, d, e, f] = this.#matrix;
    this.#matrix = [a, b, c, d, a * x + c * y + e, b * x + d * y + f];
  }
  rotate(angle: number): void {
    const [a, b, c, d, e, f] = this.#matrix;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    this.#matrix = [a * cos + c * sin, b * cos + d * sin, c * cos - a * sin, d * cos - b * sin, e, f];
  }
}
