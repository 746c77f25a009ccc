/** Vectors of many tokens as one picture in memory: a row of pixels each, painted once and drawn from there. Tokens go by their position in the text. */

import { signedStep } from '../../../lib/colour';
import type { Table } from '../../../lib/binary';
import { palette } from '../../../state/palette.svelte';

export class Strips {
  readonly cells: number;
  /** For each name the number whose colour is strongest, and the longest of its vectors. */
  readonly most: Float32Array;
  readonly longest: Float32Array;
  #atlas: HTMLCanvasElement | null = null;
  #painted: unknown = null;
  #index = new Map<string, number>();

  /** `values`: for each name and each token from the first its length, then its cells. */
  constructor(
    readonly names: string[],
    readonly first: number,
    readonly count: number,
    readonly values: Float32Array,
    columns: number,
  ) {
    this.cells = columns - 1;
    this.most = new Float32Array(names.length);
    this.longest = new Float32Array(names.length);
    names.forEach((name, n) => {
      this.#index.set(name, n);
      const sizes: number[] = [];
      for (let i = first; i < first + count; i++) {
        this.longest[n] = Math.max(this.longest[n]!, this.length(n, i));
        for (let j = 0; j < this.cells; j++) sizes.push(Math.abs(this.cell(n, i, j)));
      }
      sizes.sort((a, b) => a - b);
      this.most[n] = sizes[Math.floor(0.97 * (sizes.length - 1))] || sizes.at(-1) || 1;
    });
  }

  static of(table: Table, names: string[], first: number): Strips | null {
    const count = table.rows / names.length;
    return Number.isInteger(count) && count > 0 ? new Strips(names, first, count, table.values, table.columns) : null;
  }

  has(i: number): boolean {
    return i >= this.first && i < this.first + this.count;
  }
  #row(name: number, i: number): number {
    return name * this.count + i - this.first;
  }

  index(name: string): number {
    return this.#index.get(name) ?? -1;
  }
  length(name: number, i: number): number {
    return this.values[this.#row(name, i) * (this.cells + 1)]!;
  }
  cell(name: number, i: number, j: number): number {
    return this.values[this.#row(name, i) * (this.cells + 1) + 1 + j]!;
  }

  /** Draw the vector of a name at a token into a box of the screen. */
  draw(pen: CanvasRenderingContext2D, name: number, i: number, x: number, y: number, w: number, h: number): void {
    if (w < 0.5 || h < 0.5 || !this.has(i)) return;
    pen.drawImage(this.#picture(), 0, this.#row(name, i), this.cells, 1, x, y, w, h);
  }

  #picture(): HTMLCanvasElement {
    const scale = palette.signed;
    if (this.#atlas && this.#painted === scale) return this.#atlas;
    const atlas = (this.#atlas ??= document.createElement('canvas'));
    atlas.width = this.cells;
    atlas.height = this.names.length * this.count;
    const pen = atlas.getContext('2d')!;
    const image = pen.createImageData(atlas.width, atlas.height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let n = 0; n < this.names.length; n++)
      for (let i = 0; i < this.count; i++)
        for (let j = 0; j < this.cells; j++) pixels[(n * this.count + i) * this.cells + j] = scale[signedStep(this.cell(n, this.first + i, j), this.most[n]!)]!;
    pen.putImageData(image, 0, 0);
    this.#painted = scale;
    return atlas;
  }
}
