/** Numbers as the server writes them, and the small arithmetic that several views share. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Numbers = Float32Array | Float64Array | number[];

/** What a mask puts in place of a score: the lowest float32 there is. */
export const LOWEST = -3.4028234663852886e38;
/** A score of this or less is one the mask put there. */
export const HIDDEN = -65504;

/** A number to six significant digits; what is not finite is null, as JSON wants it. */
export const rounded = (value: number): number | null => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null);

export const line = (values: Numbers): (number | null)[] => Array.from(values, rounded);

/** A flat array as rows of so many columns. */
export function rows(values: Numbers, columns: number): (number | null)[][] {
  return Array.from({ length: columns ? values.length / columns : 0 }, (_, row) => line(values.slice(row * columns, (row + 1) * columns)));
}

/** Where the k highest are, the highest first; of equals, the one of the smaller index. */
export function likeliest(scores: Numbers, k: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < scores.length; i++) {
    const score = scores[i]!;
    if (best.length === k && !(score > scores[best[k - 1]!]!)) continue;
    let at = best.length < k ? best.length : k - 1;
    while (at > 0 && score > scores[best[at - 1]!]!) at--;
    best.splice(at, 0, i);
    if (best.length > k) best.pop();
  }
  return best;
}

export function argmax(values: Numbers): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

export function highest(values: Numbers): number {
  let found = -Infinity;
  for (let i = 0; i < values.length; i++) if (values[i]! > found) found = values[i]!;
  return found;
}

export function sum(values: Numbers): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

export function length(values: Numbers): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]! * values[i]!;
  return Math.sqrt(total);
}

export function dot(a: Numbers, b: Numbers): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i]! * b[i]!;
  return total;
}

export const mean = (values: Numbers): number => sum(values) / values.length;

/** The log of the sum of what the scores are the logs of. */
export function logTotal(scores: Numbers): number {
  const top = highest(scores);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += Math.exp(scores[i]! - top);
  return top + Math.log(total);
}

/** Shares that add up to 1. */
export function softmax(scores: Numbers): Float32Array {
  const top = highest(scores);
  const shares = new Float32Array(scores.length);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += shares[i] = Math.exp(scores[i]! - top);
  for (let i = 0; i < shares.length; i++) shares[i]! /= total;
  return shares;
}
