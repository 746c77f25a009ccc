/** Colours of numbers. The stops stand in style/tokens.css; here they become tables of 256 steps. */

export type Scale = Uint32Array;
type Lab = [number, number, number];

export function parse(colour: string): [number, number, number] {
  const hex = colour.trim().replace('#', '');
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as [number, number, number];
}

const linear = (v: number): number => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const gamma = (v: number): number => (v <= 0.0031308 ? v * 12.92 : 1.055 * v ** (1 / 2.4) - 0.055);

function toLab([r, g, b]: number[]): Lab {
  const [R, G, B] = [linear(r! / 255), linear(g! / 255), linear(b! / 255)];
  const l = Math.cbrt(0.4122214708 * R + 0.5363325363 * G + 0.0514459929 * B);
  const m = Math.cbrt(0.2119034982 * R + 0.6806995451 * G + 0.1073969566 * B);
  const s = Math.cbrt(0.0883024619 * R + 0.2817188376 * G + 0.6299787005 * B);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromLab([L, a, b]: Lab): [number, number, number] {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const rgb = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return rgb.map((v) => Math.round(255 * Math.min(1, Math.max(0, gamma(v))))) as [number, number, number];
}

/** 256 colours between the stops, evenly apart to the eye, packed for an ImageData's 32-bit view. */
export function scale(stops: string[]): Scale {
  const labs = stops.map((stop) => toLab(parse(stop)));
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (labs.length - 1);
    const low = Math.min(Math.floor(at), labs.length - 2);
    const part = at - low;
    const mixed = labs[low]!.map((v, j) => v + (labs[low + 1]![j]! - v) * part) as Lab;
    const [r, g, b] = fromLab(mixed);
    table[i] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  return table;
}

export const css = (packed: number): string =>
  `#${[packed & 255, (packed >> 8) & 255, (packed >> 16) & 255].map((v) => v.toString(16).padStart(2, '0')).join('')}`;

/** Where a share from 0 to 1 stands in a table; small shares are lifted, so that 5 % can be seen. */
export const shareStep = (share: number, most = 1): number =>
  Number.isFinite(share) && most > 0 ? Math.round(255 * Math.min(1, Math.max(0, share / most)) ** 0.6) : 0;

/** Where a signed number stands in a diverging table whose ends are ±most. */
export const signedStep = (value: number, most: number): number =>
  most > 0 && !Number.isNaN(value) ? Math.round(127.5 + 127.5 * Math.max(-1, Math.min(1, value / most))) : 128;

/** Each row of a table of shares by its own largest: a row of one strong and a row of many weak ones can both be read. */
export function byRow(values: Float32Array, columns: number): Float32Array {
  const out = new Float32Array(values.length);
  for (let start = 0; start < values.length; start += columns) {
    const most = largest(values.subarray(start, start + columns));
    if (most > 0) for (let i = start; i < start + columns; i++) out[i] = values[i]! / most;
  }
  return out;
}

/** The largest size of a finite number, masked scores left out. */
export function largest(values: ArrayLike<number>): number {
  let most = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]!);
    if (size > most && size < 1e30) most = size;
  }
  return most;
}
