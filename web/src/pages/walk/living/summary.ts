/** Many columns in a few pixels: where a token is too narrow for a river of its own, how long its vectors are, as a picture. */

import type { Strips } from './strips';

/** A column as narrow as the first is part of a summary, one as wide as the second has a river. */
export const SLIM = [2.5, 4.4] as const;
const TALL = 24; // pixels of a swelling's picture

/** So many tokens share a column of pixels: a power of two, so that the picture does not crawl while it grows. */
export const together = (each: number): number => 2 ** Math.max(0, Math.ceil(-Math.log2(1.25 * each)));

interface Scale {
  low: number;
  high: number;
}
const scales = new WeakMap<Strips, Map<string, Scale>>();
/** Where short ends and long begins among the vectors of these names, on a scale on which small ones can be seen. */
function scaleOf(strips: Strips, names: number[]): Scale {
  const known = scales.get(strips) ?? new Map<string, Scale>();
  scales.set(strips, known);
  const key = names.join();
  let found = known.get(key);
  if (!found) {
    const all = names.flatMap((name) => Array.from({ length: strips.count }, (_, i) => Math.log1p(strips.length(name, strips.first + i)))).sort((a, b) => a - b);
    found = { low: all[Math.floor(0.02 * (all.length - 1))] ?? 0, high: all[Math.floor(0.98 * (all.length - 1))] ?? 1 };
    known.set(key, found);
  }
  return found;
}

/** How long a vector is among those of these names: from 0 to 1. */
export function share(strips: Strips, names: number[], name: number, i: number): number {
  const { low, high } = scaleOf(strips, names);
  return high > low ? Math.max(0, Math.min(1, (Math.log1p(strips.length(name, i)) - low) / (high - low))) : 0.5;
}

const pictures = new WeakMap<Strips, Map<string, HTMLCanvasElement>>();
function painted(strips: Strips, key: string, wide: number, high: number, paint: (pen: CanvasRenderingContext2D) => void): HTMLCanvasElement {
  const known = pictures.get(strips) ?? new Map<string, HTMLCanvasElement>();
  pictures.set(strips, known);
  let made = known.get(key);
  if (!made) {
    known.set(key, (made = document.createElement('canvas')));
    [made.width, made.height] = [wide, high];
    paint(made.getContext('2d')!);
  }
  return made;
}

/** One name's vectors as a row of pixels: of the tokens that share one the longest, as strong as it is long. */
export function row(strips: Strips, names: number[], name: number, bin: number, colour: string): HTMLCanvasElement {
  const wide = Math.ceil(strips.count / bin);
  return painted(strips, `row ${names.join()} ${name} ${bin} ${colour}`, wide, 1, (pen) => {
    pen.fillStyle = colour;
    for (let at = 0; at < wide; at++) {
      let most = 0;
      for (let i = at * bin; i < Math.min(strips.count, (at + 1) * bin); i++) most = Math.max(most, share(strips, names, name, i));
      pen.globalAlpha = 0.1 + 0.8 * most;
      pen.fillRect(at, 0, 1, 1);
    }
  });
}

/** The same as a line that swells: as wide as the longest vector of those that share a pixel. */
export function swelling(strips: Strips, name: number, bin: number, colour: string): HTMLCanvasElement {
  const wide = Math.ceil(strips.count / bin);
  const high = Math.expm1(scaleOf(strips, [name]).high) || 1;
  return painted(strips, `swelling ${name} ${bin} ${colour}`, wide, TALL, (pen) => {
    pen.fillStyle = colour;
    for (let at = 0; at < wide; at++) {
      let most = 0;
      for (let i = at * bin; i < Math.min(strips.count, (at + 1) * bin); i++) most = Math.max(most, strips.length(name, i));
      const tall = Math.max(1, TALL * Math.min(1, most / high));
      pen.fillRect(at, (TALL - tall) / 2, 1, tall);
    }
  });
}
