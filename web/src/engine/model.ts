/**
 * GPT-2, from token ids to a score for every next token, in the order of the article: the arithmetic alone. What is made
 * of what, and under which name, stands in run.ts. Sums are kept in float64, and what is stored is float32.
 */

import { LOWEST } from './numbers';
import type { Config, Weights } from './weights';

export class Model {
  readonly output: Float32Array;
  constructor(
    readonly config: Config,
    readonly weights: Weights,
  ) {
    this.output = weights.get(config.tied ? 'token_embedding.weight' : 'output.weight');
  }

  /** What the products of query and key are multiplied by. */
  scale(layer: number): number {
    return 1 / Math.sqrt(this.config.head_width) / (this.config.scale_by_layer ? layer + 1 : 1);
  }

  /** How well each entry of the vocabulary would follow a vector. */
  score(vector: Float32Array): Float32Array {
    const { vocabulary, width } = this.config;
    const scores = new Float32Array(vocabulary);
    linear(vector, this.output, null, scores, 0, 1, width, vocabulary);
    return scores;
  }

  /** The final norm of vectors [row, width]. */
  finalNorm(vectors: Float32Array): Float32Array {
    const made = new Float32Array(vectors.length);
    const { width, norm_epsilon } = this.config;
    norm(vectors, this.weights.get('final_norm.weight'), this.weights.get('final_norm.bias'), made, 0, vectors.length / width, width, norm_epsilon);
    return made;
  }
}

/** (x - mean) / sqrt(variance + epsilon) * gain + bias, for the rows from `from` to `to`. Without a gain: standardized only. */
export function norm(x: Float32Array, gain: Float32Array | null, bias: Float32Array | null, out: Float32Array, from: number, to: number, width: number, epsilon: number): void {
  for (let row = from; row < to; row++) {
    const start = row * width;
    let mean = 0;
    for (let i = 0; i < width; i++) mean += x[start + i]!;
    mean /= width;
    let variance = 0;
    for (let i = 0; i < width; i++) variance += (x[start + i]! - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / width + epsilon);
    for (let i = 0; i < width; i++) {
      const plain = (x[start + i]! - mean) * scale;
      out[start + i] = gain && bias ? plain * gain[i]! + bias[i]! : plain;
    }
  }
}

/**
 * Rows times a matrix [output, input], plus a bias. Two rows and four outputs at a time: every number that is fetched is
 * used more than once.
 */
export function linear(x: Float32Array, matrix: Float32Array, bias: Float32Array | null, out: Float32Array, from: number, to: number, inputs: number, outputs: number): void {
  let row = from;
  for (; row + 1 < to; row += 2) {
    const a = row * inputs;
    const b = a + inputs;
    let o = 0;
    for (; o + 3 < outputs; o += 4) {
      const p = o * inputs;
      const q = p + inputs;
      const r = q + inputs;
      const s = r + inputs;
      let ap = 0, aq = 0, ar = 0, as = 0, bp = 0, bq = 0, br = 0, bs = 0;
      for (let i = 0; i < inputs; i++) {
        const one = x[a + i]!;
        const two = x[b + i]!;
        const wp = matrix[p + i]!;
        const wq = matrix[q + i]!;
        const wr = matrix[r + i]!;
        const ws = matrix[s + i]!;
        ap += one * wp;
        bp += two * wp;
        aq += one * wq;
        bq += two * wq;
        ar += one * wr;
        br += two * wr;
        as += one * ws;
        bs += two * ws;
      }
      const first = row * outputs + o;
      const second = first + outputs;
      out[first] = ap + (bias ? bias[o]! : 0);
      out[first + 1] = aq + (bias ? bias[o + 1]! : 0);
      out[first + 2] = ar + (bias ? bias[o + 2]! : 0);
      out[first + 3] = as + (bias ? bias[o + 3]! : 0);
      out[second] = bp + (bias ? bias[o]! : 0);
      out[second + 1] = bq + (bias ? bias[o + 1]! : 0);
      out[second + 2] = br + (bias ? bias[o + 2]! : 0);
      out[second + 3] = bs + (bias ? bias[o + 3]! : 0);
    }
    for (; o < outputs; o++) {
      out[row * outputs + o] = product(x, a, matrix, o * inputs, inputs) + (bias ? bias[o]! : 0);
      out[(row + 1) * outputs + o] = product(x, b, matrix, o * inputs, inputs) + (bias ? bias[o]! : 0);
    }
  }
  if (row < to) {
    const a = row * inputs;
    let o = 0;
    for (; o + 3 < outputs; o += 4) {
      const p = o * inputs;
      const q = p + inputs;
      const r = q + inputs;
      const s = r + inputs;
      let ap = 0, aq = 0, ar = 0, as = 0;
      for (let i = 0; i < inputs; i++) {
        const one = x[a + i]!;
        ap += one * matrix[p + i]!;
        aq += one * matrix[q + i]!;
        ar += one * matrix[r + i]!;
        as += one * matrix[s + i]!;
      }
      const first = row * outputs + o;
      out[first] = ap + (bias ? bias[o]! : 0);
      out[first + 1] = aq + (bias ? bias[o + 1]! : 0);
      out[first + 2] = ar + (bias ? bias[o + 2]! : 0);
      out[first + 3] = as + (bias ? bias[o + 3]! : 0);
    }
    for (; o < outputs; o++) out[row * outputs + o] = product(x, a, matrix, o * inputs, inputs) + (bias ? bias[o]! : 0);
  }
}

function product(x: Float32Array, a: number, y: Float32Array, b: number, count: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += x[a + i]! * y[b + i]!;
  return total;
}

/** [token, width] -> [head, token, head width]. */
export function split(x: Float32Array, out: Float32Array, from: number, tokens: number, heads: number, wide: number): void {
  for (let head = 0; head < heads; head++) {
    for (let token = from; token < tokens; token++) {
      const at = (token * heads + head) * wide;
      out.set(x.subarray(at, at + wide), (head * tokens + token) * wide);
    }
  }
}

/** [head, token, head width] -> [token, width]. */
export function merge(x: Float32Array, out: Float32Array, from: number, tokens: number, heads: number, wide: number): void {
  for (let head = 0; head < heads; head++) {
    for (let token = from; token < tokens; token++) {
      const at = (head * tokens + token) * wide;
      out.set(x.subarray(at, at + wide), (token * heads + head) * wide);
    }
  }
}

/** Every query with every key, times the scale. [head, query, key] */
export function scores(queries: Float32Array, keys: Float32Array, out: Float32Array, from: number, tokens: number, heads: number, wide: number, scale: number): void {
  for (let head = 0; head < heads; head++) {
    for (let query = from; query < tokens; query++) {
      const q = (head * tokens + query) * wide;
      const row = (head * tokens + query) * tokens;
      for (let key = 0; key < tokens; key++) out[row + key] = product(queries, q, keys, (head * tokens + key) * wide, wide) * scale;
    }
  }
}

/** What comes later is put to the lowest number there is. */
export function mask(x: Float32Array, out: Float32Array, from: number, tokens: number, heads: number): void {
  for (let head = 0; head < heads; head++) {
    for (let query = from; query < tokens; query++) {
      const row = (head * tokens + query) * tokens;
      out.set(x.subarray(row, row + query + 1), row);
      out.fill(LOWEST, row + query + 1, row + tokens);
    }
  }
}

/** Each row becomes shares that add up to 1. */
export function softmaxRows(x: Float32Array, out: Float32Array, from: number, tokens: number, heads: number): void {
  for (let head = 0; head < heads; head++) {
    for (let query = from; query < tokens; query++) softmaxRow(x, out, (head * tokens + query) * tokens, tokens);
  }
}

function softmaxRow(x: Float32Array, out: Float32Array, row: number, count: number): void {
  let top = -Infinity;
  for (let i = 0; i < count; i++) if (x[row + i]! > top) top = x[row + i]!;
  let total = 0;
  for (let i = 0; i < count; i++) total += out[row + i] = Math.exp(x[row + i]! - top);
  for (let i = 0; i < count; i++) out[row + i]! /= total;
}

/** The values of all tokens, each times the weight it is attended to with. [head, query, head width] */
export function mix(weights: Float32Array, values: Float32Array, out: Float32Array, from: number, tokens: number, heads: number, wide: number): void {
  const total = new Float64Array(wide);
  for (let head = 0; head < heads; head++) {
    for (let query = from; query < tokens; query++) {
      const row = (head * tokens + query) * tokens;
      total.fill(0);
      for (let key = 0; key < tokens; key++) {
        const weight = weights[row + key]!;
        if (weight === 0) continue;
        const at = (head * tokens + key) * wide;
        for (let i = 0; i < wide; i++) total[i]! += weight * values[at + i]!;
      }
      out.set(total, (head * tokens + query) * wide);
    }
  }
}

/** Attention in one go, without ever holding the table: what a long text is read with. `keys` and `values` lie `stride` tokens apart from head to head. */
export function attend(queries: Float32Array, keys: Float32Array, values: Float32Array, out: Float32Array, from: number, tokens: number, stride: number, first: number, heads: number, wide: number, scale: number): void {
  const row = new Float32Array(first + tokens);
  const total = new Float64Array(wide);
  for (let head = 0; head < heads; head++) {
    for (let query = from; query < tokens; query++) {
      const q = (head * tokens + query) * wide;
      const seen = first + query + 1;
      for (let key = 0; key < seen; key++) row[key] = product(queries, q, keys, (head * stride + key) * wide, wide) * scale;
      softmaxRow(row, row, 0, seen);
      total.fill(0);
      for (let key = 0; key < seen; key++) {
        const at = (head * stride + key) * wide;
        const weight = row[key]!;
        for (let i = 0; i < wide; i++) total[i]! += weight * values[at + i]!;
      }
      out.set(total, q);
    }
  }
}

const ROOT = Math.sqrt(2 / Math.PI);

/** The share of a number that the activation lets through, and how fast what comes out grows. */
export const SHARES: Record<Config['activation'], (x: number) => number> = {
  gelu_tanh: (x) => (1 + Math.tanh(ROOT * (x + 0.044715 * x ** 3))) / 2,
  gelu: (x) => (1 + erf(x / Math.SQRT2)) / 2,
  relu: (x) => (x > 0 ? 1 : 0),
  silu: (x) => 1 / (1 + Math.exp(-x)),
};

export const SLOPES: Record<Config['activation'], (x: number) => number> = {
  gelu_tanh: (x) => {
    const through = Math.tanh(ROOT * (x + 0.044715 * x ** 3));
    return (1 + through) / 2 + (x * (1 - through * through) * ROOT * (1 + 3 * 0.044715 * x * x)) / 2;
  },
  gelu: (x) => (1 + erf(x / Math.SQRT2)) / 2 + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI),
  relu: (x) => (x > 0 ? 1 : 0),
  silu: (x) => {
    const share = 1 / (1 + Math.exp(-x));
    return share * (1 + x * (1 - share));
  },
};

/** The error function, to the precision of float64: its series near zero, its continued fraction far from it. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x;
    let total = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total) && n < 200; n++) {
      term *= (-x * x) / n;
      total += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * total;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-x * x) / Math.sqrt(Math.PI) / (size + fraction));
}

export function activate(x: Float32Array, out: Float32Array, from: number, to: number, kind: Config['activation']): void {
  const share = SHARES[kind];
  for (let i = from; i < to; i++) out[i] = x[i]! * share(x[i]!);
}
