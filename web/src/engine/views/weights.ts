/** A matrix of weights as a small picture, and how its numbers are spread (`cutaway.inspect.picture`, `.distribution`). */

import type { Engine } from '../engine';
import { dot, length, likeliest, line, rounded, rows as asRows, type Json } from '../numbers';
import { Refusal } from '../refused';
import type { Tensor, Weights } from '../weights';

export interface Picture {
  rows: number;
  columns: number;
  mean: Float32Array;
  low: Float32Array;
  high: Float32Array;
  spread: Float32Array;
  total: { mean: number; std: number; min: number; max: number };
}

/** A matrix [rows, columns] in at most size x size cells; turned, its columns are drawn as rows. */
export function picture(numbers: Float32Array, [given, wide]: [number, number], turned: boolean, size: number): Picture {
  const [height, width] = turned ? [wide, given] : [given, wide];
  const [rows, columns] = [Math.min(height, size), Math.min(width, size)];
  const cell = (length: number, bins: number): Int32Array => {
    const of = new Int32Array(length);
    for (let bin = 0; bin < bins; bin++) of.fill(bin, Math.floor((bin * length) / bins), Math.floor(((bin + 1) * length) / bins));
    return of;
  };
  const [rowOf, columnOf] = [cell(height, rows), cell(width, columns)];
  const cells = rows * columns;
  const sums = new Float64Array(cells);
  const squares = new Float64Array(cells);
  const counts = new Float64Array(cells);
  const low = new Float32Array(cells).fill(Infinity);
  const high = new Float32Array(cells).fill(-Infinity);
  let i = 0;
  for (let a = 0; a < given; a++) {
    for (let b = 0; b < wide; b++, i++) {
      const value = numbers[i]!;
      const at = turned ? rowOf[b]! * columns + columnOf[a]! : rowOf[a]! * columns + columnOf[b]!;
      sums[at]! += value;
      squares[at]! += value * value;
      counts[at]!++;
      if (value < low[at]!) low[at] = value;
      if (value > high[at]!) high[at] = value;
    }
  }
  const mean = Float32Array.from(sums, (one, at) => one / counts[at]!);
  const spread = Float32Array.from(squares, (one, at) => Math.sqrt(Math.max(0, one / counts[at]! - (sums[at]! / counts[at]!) ** 2)));
  const whole = sums.reduce((a, b) => a + b, 0) / numbers.length;
  const std = Math.sqrt(Math.max(0, squares.reduce((a, b) => a + b, 0) / numbers.length - whole ** 2));
  const total = { mean: whole, std, min: low.reduce((a, b) => Math.min(a, b), Infinity), max: high.reduce((a, b) => Math.max(a, b), -Infinity) };
  return { rows, columns, mean, low, high, spread, total };
}

/** A matrix as the page draws it and its table counts it: inputs x outputs. A vector is one row. */
function stored(weights: Weights, name: string, size: number): { tensor: Tensor; shape: number[]; drawn: Picture } {
  const tensor = weights.tensors.find((one) => one.name === name || one.stored === name);
  if (!tensor) throw new Refusal('mistake', `This model has no matrix '${name}'.`);
  const { shape, transposed } = tensor;
  const flat: [number, number] = shape.length === 1 ? [1, shape[0]!] : [shape[0]!, shape[1]!];
  return { tensor, shape: transposed ? [...shape].reverse() : shape, drawn: picture(weights.get(tensor.name), flat, transposed, size) };
}

export function matrix(weights: Weights, model: string, name: string, size: number, bins: number): Json {
  const { tensor, shape, drawn } = stored(weights, name, size);
  const { rows, columns } = drawn;
  const table = (values: Float32Array): Json => asRows(values, columns);
  const total = Object.fromEntries(Object.entries(drawn.total).map(([of, value]) => [of, rounded(value)]));
  return {
    model,
    picture: { name: tensor.name, shape, mean: table(drawn.mean), low: table(drawn.low), high: table(drawn.high), spread: table(drawn.spread), total, rows, columns },
    distribution: distribution(weights, tensor.name, bins),
  };
}

export function pictures(weights: Weights, model: string, names: string[], size: number): Json {
  const found = names.map((name) => {
    const { drawn } = stored(weights, name, size);
    return [name, { mean: asRows(drawn.mean, drawn.columns), std: rounded(drawn.total.std) }];
  });
  return { model, pictures: Object.fromEntries(found) as Json };
}

/** The tokens whose rows of the embedding are most like that of a word's first token, less the mean row (`cutaway.inspect.discover`). */
export function neighbours(engine: Engine, word: string, k: number): Json {
  const [of] = engine.tokenizer.encode(word);
  if (of === undefined) throw new Refusal('no_text', 'Write a word to see its neighbours.');
  const { width } = engine.about.config;
  const size = engine.tokenizer.size;
  const rows = Float64Array.from(engine.model.weights.get('token_embedding.weight').subarray(0, size * width));
  const mean = new Float64Array(width);
  rows.forEach((one, i) => (mean[i % width]! += one / size));
  rows.forEach((one, i) => (rows[i] = one - mean[i % width]!));
  const row = (id: number): Float64Array => rows.subarray(id * width, (id + 1) * width);
  const mine = row(of);
  const cosine = Array.from({ length: size }, (_, id) => (id === of ? -2 : dot(row(id), mine) / Math.max(1e-12, length(row(id)) * length(mine))));
  const best = likeliest(cosine, Math.min(k, size - 1));
  return { of: engine.token(of) as Json, tokens: best.map((id) => engine.token(id)) as Json, cosine: line(best.map((id) => cosine[id]!)) };
}

function distribution(weights: Weights, name: string, bins: number): Json {
  const sorted = weights.get(name).slice().sort();
  let [low, high] = [sorted[0]!, sorted.at(-1)!];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const edges = Array.from({ length: bins + 1 }, (_, i) => (i === bins ? high : low + (i * (high - low)) / bins));
  const smaller = (edge: number): number => {
    let [from, to] = [0, sorted.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (sorted[middle]! < edge) from = middle + 1;
      else to = middle;
    }
    return from;
  };
  const ends = [...edges.slice(0, -1).map(smaller), sorted.length];
  const quantiles = [0.25, 0.5, 0.75].map((share) => {
    const place = share * (sorted.length - 1);
    const below = Math.floor(place);
    const [one, other] = [sorted[below]!, sorted[Math.min(below + 1, sorted.length - 1)]!];
    return one + (other - one) * (place - below);
  });
  return { name, edges: line(edges), counts: ends.slice(1).map((end, i) => end - ends[i]!), quantiles: line(quantiles) };
}
