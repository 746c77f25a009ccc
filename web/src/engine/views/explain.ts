/** How one number of a run was made: the terms that were added up, the parts they were made of, and their total (`cutaway.inspect.arithmetic`). */

import { SHARES, norm } from '../model';
import { HIDDEN, LOWEST, highest, rounded, softmax, sum, type Json, type Numbers } from '../numbers';
import type { Place } from '../places';
import { Refusal, within } from '../refused';
import type { Run } from '../run';

export const STANDARDIZED = '.standardized';
export const PROBABILITIES = 'probabilities';

interface Made {
  kind: string;
  total: number;
  parts?: Record<string, number>;
  left?: Numbers;
  right?: Numbers;
  product?: Float64Array;
}

interface At {
  run: Run;
  place: Place;
  position: number;
  column: number;
  width: number;
  head: number;
  plain: boolean;
}

/** What a norm makes of a token's vector before gain and bias. */
export function standardized(run: Run, name: string, position: number): Float32Array {
  const place = run.known.get(name)!;
  const x = run.row(place.inputs[0]!, position);
  const made = new Float32Array(x.length);
  norm(x, null, null, made, 0, 1, x.length, run.model.config.norm_epsilon);
  return made;
}

/** A vector of what the place is made of: of this token, in this head where there are heads. */
const input = ({ run, place, position, head }: At, n = 0, at = position): Float32Array => {
  const name = place.inputs[n]!;
  return run.known.get(name)!.axes[0] === 'head' ? run.headRow(name, head, at) : run.row(name, at);
};

const MAKERS: Record<string, (at: At) => Made> = {
  'look up': ({ run, place, position, column }) => {
    const row = place.inputs[0] === 'ids' ? run.ids[position]! : position;
    const matrix = run.model.weights.get(`${place.module}.weight`);
    const { width } = run.model.config;
    return { kind: 'lookup', total: matrix[row * width + column]!, parts: { row, rows: matrix.length / width } };
  },
  add: (at) => {
    const [a, b] = [input(at, 0)[at.column]!, input(at, 1)[at.column]!];
    return { kind: 'add', total: a + b, parts: { a, b } };
  },
  norm: (at) => {
    const { run, place, column } = at;
    const vector = input(at);
    const x = vector[column]!;
    const mean = sum(vector) / vector.length;
    const variance = vector.reduce((total, one) => total + (one - mean) ** 2, 0) / vector.length;
    const epsilon = run.model.config.norm_epsilon;
    const normal = (x - mean) / Math.sqrt(variance + epsilon);
    const parts = { x, mean, variance, epsilon };
    if (at.plain) return { kind: 'standard', total: normal, parts };
    const [gain, bias] = ['weight', 'bias'].map((kind) => run.model.weights.get(`${place.module}.${kind}`)[column]!) as [number, number];
    return { kind: 'norm', total: normal * gain + bias, parts: { ...parts, normal, gain, bias } };
  },
  linear: (at) => {
    const { run, place, column, width, head } = at;
    const matrix = run.model.weights.get(`${place.module}.weight`);
    const vector = input(at);
    const outputs = matrix.length / vector.length;
    const [which, shares] = place.share;
    const output = which * (outputs / shares) + head * width + column;
    const weights = matrix.subarray(output * vector.length, (output + 1) * vector.length);
    const terms = Float64Array.from(vector, (one, i) => one * weights[i]!);
    const total = sum(terms);
    const bias = place.name === 'logits' ? undefined : run.model.weights.get(`${place.module}.bias`)[output]!;
    return { kind: 'product', total: total + (bias ?? 0), parts: { output, sum: total, ...(bias === undefined ? {} : { bias }) }, left: vector, right: weights, product: terms };
  },
  score: (at) => {
    const [query, key] = [input(at, 0), input(at, 1, at.column)];
    const terms = Float64Array.from(query, (one, i) => one * key[i]!);
    const scale = at.run.model.scale(Number(at.place.name.split('.')[1]));
    const total = sum(terms);
    return { kind: 'score', total: total * scale, parts: { sum: total, width: query.length, scale }, left: query, right: key, product: terms };
  },
  mask: (at) => {
    const score = input(at)[at.column]!;
    const seen = at.column <= at.position;
    return { kind: 'mask', total: seen ? score : LOWEST, parts: { score, seen: seen ? 1 : 0 } };
  },
  softmax: (at) => {
    const row = at.place.name === PROBABILITIES ? at.run.logits(at.position) : input(at);
    const top = highest(row);
    const powers = Float64Array.from(row, (one) => Math.exp(one - top));
    const total = sum(powers);
    const score = row[at.column]!;
    const parts = { score: score <= HIDDEN ? -Infinity : score, highest: top, power: powers[at.column]!, sum: total };
    return { kind: 'softmax', total: parts.power / total, parts, left: Array.from(row, (one) => Math.max(one, HIDDEN)), right: powers, product: powers };
  },
  mix: (at) => {
    const weights = input(at, 0).subarray(0, at.position + 1);
    const values = Float64Array.from(weights, (_, key) => input(at, 1, key)[at.column]!);
    const terms = values.map((one, key) => one * weights[key]!);
    return { kind: 'mix', total: sum(terms), left: weights, right: values, product: terms };
  },
  merge: ({ run, place, position, column }) => {
    const wide = run.model.config.head_width;
    const [head, inside] = [Math.floor(column / wide), column % wide];
    return { kind: 'copy', total: run.headRow(place.inputs[0]!, head, position)[inside]!, parts: { head, column: inside } };
  },
  activate: (at) => {
    const x = input(at)[at.column]!;
    const share = SHARES[at.run.model.config.activation](x);
    return { kind: 'activation', total: x * share, parts: { x, share } };
  },
};

export function explain(run: Run, name: string, given: number, column: number, head: number | null, terms: number): Json {
  const plain = name.endsWith(STANDARDIZED);
  const base = plain ? name.slice(0, -STANDARDIZED.length) : name;
  const place: Place | undefined = name === PROBABILITIES ? { name, axes: ['token', 'column'], operation: 'softmax', inputs: ['logits'], module: '', share: [0, 1] } : run.known.get(base);
  if (!place || (plain && place.operation !== 'norm')) throw new Refusal('mistake', `Nothing in this model is called '${name}'.`);
  const divided = place.axes[0] === 'head';
  if (divided && head === null) throw new Refusal('mistake', `${name} is divided into heads: say which head.`);
  if (!divided && head !== null) throw new Refusal('mistake', `${name} is not divided into heads: leave the head out.`);
  const position = run.position(given);
  const number = head === null ? 0 : run.head(head);
  const row = name === PROBABILITIES ? softmax(run.logits(position)) : plain ? standardized(run, base, position) : divided ? run.headRow(name, number, position) : run.row(name, position);
  const at = within(place.axes.at(-1)!, column, row.length);
  const made = MAKERS[place.operation]!({ run, place, position, column: at, width: row.length, head: number, plain });
  const value = row[at]!;
  let listed: Json[] = [];
  let [count, rest] = [0, 0];
  if (made.product && made.left && made.right) {
    const { product, left, right } = made;
    count = product.length;
    const best = Array.from(product, (_, i) => i).sort((a, b) => Math.abs(product[b]!) - Math.abs(product[a]!) || a - b).slice(0, Math.max(0, terms));
    rest = count > best.length ? sum(product) - best.reduce((total, i) => total + product[i]!, 0) : 0;
    listed = best.map((i) => [i, rounded(left[i]!), rounded(right[i]!), rounded(product[i]!)]);
  }
  const shown = (one: number): number | null => (one <= HIDDEN ? null : rounded(one));
  const parts = Object.fromEntries(Object.entries(made.parts ?? {}).map(([part, one]) => [part, rounded(one)]));
  const replaced = run.changes.has(base) && Math.abs(made.total - value) > 1e-4 * Math.max(1, Math.abs(value));
  return { name, position, head: divided ? number : null, column: at, kind: made.kind, value: shown(value), total: shown(made.total), parts, terms: listed, count, rest: rounded(rest), replaced };
}
