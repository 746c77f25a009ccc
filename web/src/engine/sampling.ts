/** From logits to the next token: temperature, top-k, top-p, softmax, a choice; each as in `cutaway.decoding.sampling`. */

import { highest } from './numbers';
import { Refusal } from './refused';

export interface Sampling {
  temperature: number;
  /** null: the whole vocabulary. */
  top_k: number | null;
  top_p: number;
}

const COLDEST = 1e-7;

export function check({ temperature, top_k, top_p }: Sampling): void {
  if (!(temperature >= 0 && Number.isFinite(temperature))) throw new Refusal('mistake', `The temperature must be 0 (greedy) or above, not ${temperature}.`);
  if (top_k !== null && top_k < 1) throw new Refusal('mistake', `The top-k must be 1 or more, not ${top_k}.`);
  if (!(top_p > 0 && top_p <= 1)) throw new Refusal('mistake', `The top-p must be above 0 and at most 1, not ${top_p}.`);
}

export const greedy = ({ temperature, top_k }: Sampling): boolean => top_k === 1 || temperature < COLDEST;

/** Probabilities as float32, with the sum in float64: as numpy makes them. */
export function shares(logits: Float32Array): Float32Array {
  const top = highest(logits);
  const found = new Float32Array(logits.length);
  let total = 0;
  for (let i = 0; i < logits.length; i++) {
    found[i] = Math.exp(Math.fround(logits[i]! - top));
    total += found[i]!;
  }
  total = Math.fround(total);
  for (let i = 0; i < found.length; i++) found[i] = found[i]! / total;
  return found;
}

/** The logits divided by the temperature; at 0 only the highest stays possible, of equals the first. */
export function warm(logits: Float32Array, temperature: number): Float32Array {
  const heat = Math.fround(temperature);
  if (temperature >= COLDEST) return logits.map((one) => one / heat);
  const only = new Float32Array(logits.length).fill(-Infinity);
  only[logits.indexOf(highest(logits))] = 0;
  return only;
}

/** Only the k highest stay possible, and those level with the last of them. */
export function keepTopK(logits: Float32Array, k: number): Float32Array {
  const lowest = logits.slice().sort()[Math.max(0, logits.length - k)]!;
  return logits.map((one) => (one < lowest ? -Infinity : one));
}

/** Only the likeliest stay, as many as it takes to reach the probability p. */
export function keepTopP(logits: Float32Array, p: number): Float32Array {
  const ordered = logits.slice().sort();
  const part = shares(ordered);
  const limit = Math.fround(1 - p);
  let total = 0;
  let dropped = 0;
  for (; dropped < ordered.length - 1; dropped++) {
    total += part[dropped]!;
    if (Math.fround(total) > limit) break;
  }
  const lowest = ordered[dropped]!;
  let level = dropped - ordered.indexOf(lowest); // of equals the first go, until so many have gone
  return logits.map((one) => (one < lowest || (one === lowest && level-- > 0) ? -Infinity : one));
}

/** The distribution the next token is drawn from. */
export function probabilities(logits: Float32Array, settings: Sampling): Float32Array {
  let left = warm(logits, settings.temperature);
  if (settings.top_k !== null) left = keepTopK(left, settings.top_k);
  if (settings.top_p < 1) left = keepTopP(left, settings.top_p);
  return shares(left);
}

/** The token that a number in [0, 1) points at, on the line that the probabilities divide. */
export function draw(chances: Float32Array, uniform: number): number {
  let total = 0;
  for (let i = 0; i < chances.length; i++) total += chances[i]!;
  const goal = uniform * total;
  let line = 0;
  let last = 0;
  for (let i = 0; i < chances.length; i++) {
    if (!chances[i]) continue;
    line += chances[i]!;
    last = i;
    if (line > goal) return i;
  }
  return last;
}
