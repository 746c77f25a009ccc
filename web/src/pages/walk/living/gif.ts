/** A stretch of the picture as an animated GIF: looked at some times a second, small enough to be sent around. */

import { applyPalette, GIFEncoder, quantize } from 'gifenc';

const EVERY = 100; // milliseconds from one look to the next
const WIDEST = 720;
const LONGEST = 900; // looks: a minute and a half

export class Gif {
  readonly #gif = GIFEncoder();
  readonly #small = document.createElement('canvas');
  readonly #pen: CanvasRenderingContext2D;
  readonly #timer: ReturnType<typeof setInterval>;
  #last: { pixels: Uint8ClampedArray; since: number } | null = null;
  #looks = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    const shrunk = Math.min(1, WIDEST / canvas.width);
    this.#small.width = Math.round(canvas.width * shrunk);
    this.#small.height = Math.round(canvas.height * shrunk);
    this.#pen = this.#small.getContext('2d', { willReadFrequently: true })!;
    this.#pen.imageSmoothingQuality = 'high';
    this.#look();
    this.#timer = setInterval(() => this.#look(), EVERY);
  }

  #look(): void {
    const { width, height } = this.#small;
    this.#pen.drawImage(this.canvas, 0, 0, width, height);
    const { data: pixels } = this.#pen.getImageData(0, 0, width, height);
    const last = this.#last;
    if (last && last.pixels.every((value, i) => value === pixels[i])) return; // stays for longer
    const now = performance.now();
    if (last) this.#write(last.pixels, now - last.since);
    this.#last = { pixels, since: now };
    if (++this.#looks >= LONGEST) clearInterval(this.#timer);
  }
  #write(pixels: Uint8ClampedArray, delay: number): void {
    const palette = quantize(pixels, 256, { format: 'rgb565' });
    this.#gif.writeFrame(applyPalette(pixels, palette, 'rgb565'), this.#small.width, this.#small.height, { palette, delay: Math.max(20, Math.round(delay)) });
  }

  end(): Promise<{ film: Blob; ending: string }> {
    clearInterval(this.#timer);
    if (this.#last) this.#write(this.#last.pixels, Math.max(EVERY, performance.now() - this.#last.since));
    this.#gif.finish();
    return Promise.resolve({ film: new Blob([this.#gif.bytes() as Uint8Array<ArrayBuffer>], { type: 'image/gif' }), ending: 'gif' });
  }
}
