/** One text carried through the model, and everything it made on its way, by name: where every view begins. */

import { Model, activate, attend, linear, mask, merge, mix, norm, scores, softmaxRows, split } from './model';
import { argmax } from './numbers';
import { columns, placeOf, places, type Place } from './places';
import { within } from './refused';

/** What is always kept: as large as the tokens are many, and enough to make the rest again. */
const STREAM = /^(residual\.0|blocks\.\d+\.(residual|residual\.middle|attention\.(keys|values|merged))|final_norm)$/;
/** So many bytes of the rest stay at hand; what was asked for longest ago goes first. */
const AT_HAND = 96 << 20;
/** Up to so many tokens attention is read through its table; of more tokens the tables are made when they are asked for. */
const TABLES = 256;
/** A common beginning of fewer tokens is not taken over. */
const WORTHWHILE = 4;

export type Change = (value: Float32Array, run: Run) => void;

export class Run {
  readonly known: Map<string, Place>;
  readonly #made = new Map<string, Float32Array>();
  readonly #logits = new Map<number, Float32Array>();
  #bytes = 0;
  #after: { run: Run; tokens: number } | null = null;

  /**
   * `changes` are made to what has their name, in their order. A run over a text with the same beginning lends what it has;
   * one over the same text lends a run with changes all that comes before the first of them.
   */
  constructor(
    readonly model: Model,
    readonly ids: readonly number[],
    readonly changes: ReadonlyMap<string, Change[]> = new Map(),
    after: Run | null = null,
  ) {
    this.known = places(model.config);
    const common = after && !after.changes.size && !changes.size ? shared(after.ids, ids) : 0;
    if (after && common >= WORTHWHILE) this.#after = { run: after, tokens: common };
    if (after && !after.changes.size && changes.size && after.ids.join() === ids.join()) {
      for (const name of this.known.keys()) {
        if (changes.has(name)) break;
        const made = after.#made.get(name);
        if (made && STREAM.test(name)) this.#made.set(name, made);
      }
    }
    for (const name of this.known.keys()) if (STREAM.test(name)) this.get(name);
    this.#after = null;
  }

  get length(): number {
    return this.ids.length;
  }
  get bytes(): number {
    let total = this.#bytes;
    for (const [name, made] of this.#made) if (STREAM.test(name)) total += made.byteLength;
    return total;
  }

  position(at: number): number {
    return within('token', at, this.length);
  }
  layer(at: number): number {
    return within('layer', at, this.model.config.layers);
  }
  head(at: number): number {
    return within('head', at, this.model.config.heads);
  }
  columns(name: string): number {
    return columns(this.model.config, this.length, placeOf(this.known, name));
  }

  /** An intermediate by its name: [token, column], [head, token, column] or [head, query, key]. */
  get(name: string): Float32Array {
    const place = placeOf(this.known, name);
    const kept = this.#made.get(name);
    if (kept) {
      if (!STREAM.test(name)) {
        this.#made.delete(name);
        this.#made.set(name, kept);
      }
      return kept;
    }
    const wide = columns(this.model.config, this.length, place);
    const made = new Float32Array((place.axes[0] === 'head' ? this.model.config.heads : 1) * this.length * wide);
    this.#make(place, made, this.#lent(place, made, wide), wide);
    for (const change of this.changes.get(name) ?? []) change(made, this);
    this.#keep(name, made);
    return made;
  }

  #keep(name: string, made: Float32Array): void {
    this.#made.set(name, made);
    if (STREAM.test(name)) return;
    this.#bytes += made.byteLength;
    for (const [other, value] of this.#made) {
      if (this.#bytes <= AT_HAND) break;
      if (other === name || STREAM.test(other)) continue;
      this.#made.delete(other);
      this.#bytes -= value.byteLength;
    }
  }

  /** Take over the rows of the common beginning; how many these are. */
  #lent(place: Place, made: Float32Array, wide: number): number {
    const { run, tokens } = this.#after ?? { run: null, tokens: 0 };
    const known = run ? run.#made.get(place.name) : undefined;
    if (!run || !known || place.axes.at(-1) === 'key') return 0;
    const heads = place.axes[0] === 'head' ? this.model.config.heads : 1;
    for (let head = 0; head < heads; head++) {
      const at = head * run.length * wide;
      made.set(known.subarray(at, at + tokens * wide), head * this.length * wide);
    }
    return tokens;
  }

  #make({ name, operation, inputs, module, share: [third] }: Place, out: Float32Array, from: number, wide: number): void {
    const { config, weights } = this.model;
    const { heads, head_width, width, norm_epsilon } = config;
    const tokens = this.length;
    const layer = Number(/^blocks\.(\d+)/.exec(name)?.[1] ?? 0);
    const [first = '', second = ''] = inputs;
    switch (operation) {
      case 'look up': {
        const table = weights.get(`${module}.weight`);
        for (let at = from; at < tokens; at++) {
          const row = first === 'ids' ? this.ids[at]! : at;
          out.set(table.subarray(row * width, (row + 1) * width), at * width);
        }
        return;
      }
      case 'add': {
        const [a, b] = [this.get(first), this.get(second)];
        for (let i = from * width; i < out.length; i++) out[i] = a[i]! + b[i]!;
        return;
      }
      case 'norm':
        return norm(this.get(first), weights.get(`${module}.weight`), weights.get(`${module}.bias`), out, from, tokens, width, norm_epsilon);
      case 'linear': {
        const x = this.get(first);
        if (name === 'logits') return linear(x, this.model.output, null, out, from, tokens, width, wide);
        const [matrix, bias] = [weights.get(`${module}.weight`), weights.get(`${module}.bias`)];
        if (!/\.(queries|keys|values)$/.test(name)) return linear(x, matrix, bias, out, from, tokens, bias.length ? matrix.length / bias.length : 0, wide);
        const part = new Float32Array(tokens * width);
        linear(x, matrix.subarray(third * width * width, (third + 1) * width * width), bias.subarray(third * width, (third + 1) * width), part, from, tokens, width, width);
        return split(part, out, from, tokens, heads, head_width);
      }
      case 'score':
        return scores(this.get(first), this.get(second), out, from, tokens, heads, head_width, this.model.scale(layer));
      case 'mask':
        return mask(this.get(first), out, from, tokens, heads);
      case 'softmax':
        return softmaxRows(this.get(first), out, from, tokens, heads);
      case 'mix': {
        if (this.#made.has(name.replace('.heads', '.merged')) && !this.changes.has(name.replace('.heads', '.merged'))) return split(this.get(name.replace('.heads', '.merged')), out, from, tokens, heads, head_width);
        const watched = ['scores', 'masked', 'weights'].some((one) => this.changes.has(name.replace('heads', one)));
        if (tokens <= TABLES || watched) return mix(this.get(first), this.get(second), out, from, tokens, heads, head_width);
        const at = name.replace('.heads', '');
        return attend(this.get(`${at}.queries`), this.get(`${at}.keys`), this.get(second), out, from, tokens, tokens, 0, heads, head_width, this.model.scale(layer));
      }
      case 'merge':
        return merge(this.get(first), out, from, tokens, heads, head_width);
      case 'activate':
        return activate(this.get(first), out, from * wide, out.length, config.activation);
    }
  }

  /** The scores after one token. */
  logits(at: number): Float32Array {
    const position = this.position(at);
    const kept = this.#logits.get(position);
    if (kept) return kept;
    const { width, vocabulary } = this.model.config;
    const found = this.changes.has('logits') ? this.get('logits').slice(position * vocabulary, (position + 1) * vocabulary) : this.model.score(this.row('final_norm', position, width));
    this.#logits.set(position, found);
    if (this.#logits.size > 64) this.#logits.delete(this.#logits.keys().next().value!);
    return found;
  }

  /** One token's vector of an intermediate without heads. */
  row(name: string, at: number, wide = this.columns(name)): Float32Array {
    if (name === 'logits') return this.logits(at);
    return this.get(name).subarray(at * wide, (at + 1) * wide);
  }
  /** One token's vector, or row of a table, in one head. */
  headRow(name: string, head: number, at: number): Float32Array {
    const wide = this.columns(name);
    const start = (head * this.length + at) * wide;
    return this.get(name).subarray(start, start + wide);
  }

  /** The id of the token after this one: the one that stands there, or after the last one the likeliest. */
  next(at: number, size: number): number {
    return this.ids[at + 1] ?? this.likeliest(at, size);
  }
  likeliest(at: number, size: number): number {
    return argmax(this.logits(at).subarray(0, size));
  }
}

/** How many tokens at their beginning two texts have in common, less the last of the second. */
function shared(one: readonly number[], other: readonly number[]): number {
  let count = 0;
  while (count < one.length && count < other.length - 1 && one[count] === other[count]) count++;
  return count;
}
