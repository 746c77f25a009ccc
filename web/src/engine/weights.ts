/** The model's file beside the page: a table of its tensors, and their numbers as float16, loaded once. */

import { decode } from '../lib/binary';
import type { Vocabulary } from './tokenizer';

export interface Config {
  vocabulary: number;
  context: number;
  width: number;
  layers: number;
  heads: number;
  head_width: number;
  mlp_width: number;
  activation: 'gelu_tanh' | 'gelu' | 'relu' | 'silu';
  norm_epsilon: number;
  tied: boolean;
  scale_by_layer: boolean;
  end: number;
}

export interface Tensor {
  name: string;
  /** Its name in a checkpoint; where the two differ in their axes, the checkpoint has [input, output]. */
  stored: string;
  shape: number[];
  transposed: boolean;
  /** Where its numbers begin, counted in numbers. */
  start: number;
}

/** What `cutaway explore --export` writes as model.json. */
export interface Description {
  version: string;
  model: string;
  config: Config;
  recommended: Record<string, number | null>;
  vocabulary: Vocabulary;
  tensors: Tensor[];
  bytes: number;
  /** How many bytes a number has in Python, which the cache is counted in. */
  element: number;
  /** What was asked in Python, by a hash of the question. */
  recorded: string[];
}

export type Report = (done: number, total: number) => void;

/** All of a file; the report says how far it is. */
export async function fetched(address: string, total: number, report: Report): Promise<ArrayBuffer> {
  const response = await fetch(address);
  if (!response.ok || !response.body) throw new TypeError(`${response.status} ${response.statusText}`);
  const bytes = new Uint8Array(total);
  const reader = response.body.getReader();
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > total) throw new TypeError('the file of weights is longer than it should be');
    bytes.set(value, at);
    at += value.length;
    report(at, total);
  }
  if (at !== total) throw new TypeError('the file of weights arrived incomplete');
  return bytes.buffer;
}

export class Weights {
  readonly #numbers = new Map<string, Float32Array>();
  constructor(
    readonly tensors: Tensor[],
    buffer: ArrayBuffer,
  ) {
    for (const { name, shape, start } of tensors) {
      const count = shape.reduce((a, b) => a * b, 1);
      this.#numbers.set(name, decode(buffer.slice(2 * start, 2 * (start + count)), 'float16'));
    }
  }

  /** A tensor as torch has it: a matrix is [output, input]. */
  get(name: string): Float32Array {
    const found = this.#numbers.get(name);
    if (!found) throw new Error(`there is no tensor ${name}`);
    return found;
  }
}
