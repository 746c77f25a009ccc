/** Drawing a table of numbers on a canvas, row by row; many numbers fold into the pixels there are. */

import { largest, shareStep, signedStep } from '../../lib/colour';
import { foldVector } from '../../lib/fold';
import { palette } from '../../state/palette.svelte';

export interface Look {
  values: ArrayLike<number>;
  rows: number;
  columns: number;
  scale: 'signed' | 'share';
  /** The number whose colour is strongest; without it the largest of these. */
  most?: number;
  /** Pixels between two rows. */
  gap: number;
}

export const MASKED = -1e30;

export function colourOf(value: number, scale: Look['scale'], most: number): number {
  if (value < MASKED) return palette.masked;
  return scale === 'share' ? palette.share[shareStep(value, most)]! : palette.signed[signedStep(value, most)]!;
}

const MANY = 64;
const TOO_MANY = 20_000;

/** The size of number that gets the strongest colour: of a long vector not its few giants, beside which all else is grey. */
export function strongest({ values, scale, columns }: Pick<Look, 'values' | 'scale' | 'columns'>): number {
  if (scale === 'share' || columns < MANY || values.length > TOO_MANY) return largest(values);
  const sizes = Float32Array.from(values, Math.abs).sort();
  return sizes[Math.floor(0.985 * (sizes.length - 1))]! || largest(values);
}

/** Whether dark or light letters can be read on a colour. */
const bright = (packed: number): boolean => 0.3 * (packed & 255) + 0.59 * ((packed >> 8) & 255) + 0.11 * ((packed >> 16) & 255) > 140;

/** Some rows of the table as one, as many cells as there are pixels; of several numbers the largest stays in sight. */
function rowOf(look: Look, from: number, to: number, pixels: number): ArrayLike<number> {
  const { values, columns } = look;
  const part = new Float32Array(columns);
  for (let j = 0; j < columns; j++) {
    let best = values[from * columns + j]!;
    for (let i = from + 1; i < to; i++) {
      const value = values[i * columns + j]!;
      if (value > MASKED && (best < MASKED || Math.abs(value) > Math.abs(best))) best = value;
    }
    part[j] = best;
  }
  return columns > pixels ? foldVector(part, pixels) : part;
}

/** A number as it stands in its cell, with so many digits that count. */
export type Write = (value: number, digits: number) => string;

/** As many digits, three at most, as leave every number inside its own cell. */
function digitsThatFit(context: CanvasRenderingContext2D, font: string, { values, rows, columns }: Look, write: Write, room: number): number {
  if (rows * columns > TOO_MANY) return 1;
  context.font = font;
  for (let digits = 3; digits > 1; digits--) {
    let fits = true;
    for (let i = 0; fits && i < rows * columns; i++) fits = context.measureText(write(values[i]!, digits)).width <= room;
    if (fits) return digits;
  }
  return 1;
}

export function paint(canvas: HTMLCanvasElement, width: number, height: number, look: Look, write?: Write): void {
  const dense = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * dense));
  canvas.height = Math.max(1, Math.round(height * dense));
  const context = canvas.getContext('2d')!;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  const most = look.most ?? strongest(look);
  const shown = Math.min(look.rows, canvas.height);
  const high = canvas.height / shown;
  const gap = high >= 8 ? look.gap * dense : 0;
  const font = `${11.5 * dense}px ui-monospace, 'DejaVu Sans Mono', monospace`;
  const digits = write ? digitsThatFit(context, font, look, write, canvas.width / look.columns - 4 * dense) : 0;
  const line = document.createElement('canvas');
  line.height = 1;
  const pen = line.getContext('2d')!;
  for (let i = 0; i < shown; i++) {
    const from = Math.floor((i * look.rows) / shown);
    const cells = rowOf(look, from, Math.max(from + 1, Math.floor(((i + 1) * look.rows) / shown)), canvas.width);
    line.width = cells.length;
    const image = pen.createImageData(cells.length, 1);
    const pixels = new Uint32Array(image.data.buffer);
    for (let j = 0; j < cells.length; j++) pixels[j] = colourOf(cells[j]!, look.scale, most);
    pen.putImageData(image, 0, 0);
    const top = Math.round(i * high);
    const bottom = Math.round((i + 1) * high - (i < shown - 1 ? gap : 0));
    context.drawImage(line, 0, 0, cells.length, 1, 0, top, canvas.width, Math.max(1, bottom - top));
    const wide = canvas.width / look.columns;
    if (gap) for (let j = 1; wide >= 7 * dense && j < look.columns; j++) context.clearRect(Math.round(j * wide) - dense / 2, top, dense, bottom - top);
    if (write && wide >= 30 * dense && high >= 15 * dense) {
      context.font = font;
      context.textAlign = 'center';
      context.textBaseline = 'middle';
      for (let j = 0; j < look.columns; j++) {
        context.fillStyle = bright(pixels[j]!) ? '#1e1d1a' : '#ffffff';
        context.fillText(write(cells[j]!, digits), (j + 0.5) * wide, (top + bottom) / 2, wide - 2 * dense);
      }
    }
  }
}

/** A strip or table as an image for a drawing, with its numbers where `write` is given. */
export function picture(values: ArrayLike<number>, rows: number, columns: number, scale: Look['scale'], width: number, height: number, write?: Write): string {
  const canvas = document.createElement('canvas');
  paint(canvas, width, height, { values, rows, columns, scale, gap: rows > 1 ? 1 : 0 }, write);
  return canvas.toDataURL('image/png');
}

