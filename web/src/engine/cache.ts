/** What is kept between steps while a text is written: the keys and values of every layer. One new token at a time is read. */

import { activate, attend, linear, norm, type Model } from './model';
import type { Run } from './run';

export class Cache {
  readonly #keys: Float32Array[];
  readonly #values: Float32Array[];
  tokens = 0;

  constructor(
    readonly model: Model,
    readonly room: number,
  ) {
    const { layers, heads, head_width } = model.config;
    const made = (): Float32Array[] => Array.from({ length: layers }, () => new Float32Array(heads * room * head_width));
    [this.#keys, this.#values] = [made(), made()];
  }

  /** The cache after a text that was carried through. */
  static after(run: Run, room: number): Cache {
    const cache = new Cache(run.model, room);
    const { heads, head_width, layers } = run.model.config;
    for (let layer = 0; layer < layers; layer++) {
      for (const [name, into] of [['keys', cache.#keys[layer]!], ['values', cache.#values[layer]!]] as const) {
        const made = run.get(`blocks.${layer}.attention.${name}`);
        for (let head = 0; head < heads; head++) into.set(made.subarray(head * run.length * head_width, (head + 1) * run.length * head_width), head * room * head_width);
      }
    }
    cache.tokens = run.length;
    return cache;
  }

  copy(): Cache {
    const cache = new Cache(this.model, this.room);
    this.#keys.forEach((one, layer) => cache.#keys[layer]!.set(one));
    this.#values.forEach((one, layer) => cache.#values[layer]!.set(one));
    cache.tokens = this.tokens;
    return cache;
  }

  /** Read one token more: the scores of what comes after it. */
  read(id: number): Float32Array {
    const { config, weights } = this.model;
    const { width, heads, head_width, mlp_width, norm_epsilon, layers, activation } = config;
    const at = this.tokens;
    const stream = new Float32Array(width);
    const tokens = weights.get('token_embedding.weight');
    const positions = weights.get('position_embedding.weight');
    for (let i = 0; i < width; i++) stream[i] = tokens[id * width + i]! + positions[at * width + i]!;
    const normed = new Float32Array(width);
    const three = new Float32Array(3 * width);
    const mixed = new Float32Array(width);
    const added = new Float32Array(width);
    const hidden = new Float32Array(mlp_width);
    for (let layer = 0; layer < layers; layer++) {
      const block = `blocks.${layer}`;
      const of = (name: string): Float32Array => weights.get(`${block}.${name}`);
      const [keys, values] = [this.#keys[layer]!, this.#values[layer]!];
      norm(stream, of('attention_norm.weight'), of('attention_norm.bias'), normed, 0, 1, width, norm_epsilon);
      linear(normed, of('attention.queries_keys_values.weight'), of('attention.queries_keys_values.bias'), three, 0, 1, width, 3 * width);
      for (let head = 0; head < heads; head++) {
        const from = head * head_width;
        keys.set(three.subarray(width + from, width + from + head_width), (head * this.room + at) * head_width);
        values.set(three.subarray(2 * width + from, 2 * width + from + head_width), (head * this.room + at) * head_width);
      }
      attend(three.subarray(0, width), keys, values, mixed, 0, 1, this.room, at, heads, head_width, this.model.scale(layer));
      linear(mixed, of('attention.projection.weight'), of('attention.projection.bias'), added, 0, 1, width, width);
      for (let i = 0; i < width; i++) stream[i]! += added[i]!;
      norm(stream, of('mlp_norm.weight'), of('mlp_norm.bias'), normed, 0, 1, width, norm_epsilon);
      linear(normed, of('mlp.widen.weight'), of('mlp.widen.bias'), hidden, 0, 1, width, mlp_width);
      activate(hidden, hidden, 0, mlp_width, activation);
      linear(hidden, of('mlp.projection.weight'), of('mlp.projection.bias'), added, 0, 1, mlp_width, width);
      for (let i = 0; i < width; i++) stream[i]! += added[i]!;
    }
    this.tokens++;
    return this.model.score(this.model.finalNorm(stream));
  }
}
