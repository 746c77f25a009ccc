/** What the worker remembers between two questions: the model, its words, and the last few texts carried through. */

import { Model } from './model';
import type { Json } from './numbers';
import { Refusal } from './refused';
import { Run, type Change } from './run';
import { Tokenizer, type Token } from './tokenizer';
import type { Description, Weights } from './weights';

/** Bytes of runs that are remembered, and no more of them than this, however small. */
const MEMORY = 256 << 20;
const RUNS = 12;

export class Engine {
  readonly model: Model;
  readonly tokenizer: Tokenizer;
  readonly #runs = new Map<string, Run>();

  constructor(
    readonly about: Description,
    weights: Weights,
  ) {
    this.model = new Model(about.config, weights);
    this.tokenizer = new Tokenizer(about.vocabulary);
  }

  get name(): string {
    return this.about.model;
  }
  token(id: number): Token {
    return this.tokenizer.token(id);
  }

  /** The text's ids and the tokens picked after it; the end token stands for nothing at all, as in training. */
  ids(text: string, more: readonly number[] = []): number[] {
    const { vocabulary, context, end } = this.about.config;
    for (const id of more) if (!(id >= 0 && id < vocabulary)) throw new Refusal('mistake', `There is no token ${id}: the vocabulary has ${vocabulary} entries.`);
    const ids = [...this.tokenizer.encode(text), ...more];
    if (ids.length > context) throw new Refusal('too_long', `The text is ${ids.length} tokens long and this model's context is ${context}.`, { tokens: ids.length, context });
    return ids.length ? ids : [end];
  }

  /** Carry a text through, once: the same question again gives the same run. */
  run(ids: readonly number[], changes?: ReadonlyMap<string, Change[]>, key = idOf(ids)): Run {
    const known = this.#runs.get(key);
    const run = known ?? new Run(this.model, ids, changes, changes?.size ? null : this.#nearest(ids));
    this.#runs.delete(key);
    this.#runs.set(key, run);
    let bytes = 0;
    for (const one of this.#runs.values()) bytes += one.bytes;
    for (const [other, one] of this.#runs) {
      if (this.#runs.size <= 1 || (this.#runs.size <= RUNS && bytes <= MEMORY)) break;
      this.#runs.delete(other);
      bytes -= one.bytes;
    }
    return run;
  }

  /** A run by the id it was given. */
  known(key: string): Run {
    const run = this.#runs.get(key);
    if (!run) throw new Refusal('forgotten', 'This run is no longer remembered. Ask for it again.');
    this.#runs.delete(key);
    this.#runs.set(key, run);
    return run;
  }

  #nearest(ids: readonly number[]): Run | null {
    let [best, most] = [null as Run | null, 0];
    for (const run of this.#runs.values()) {
      let common = 0;
      while (common < run.length && run.ids[common] === ids[common]) common++;
      if (!run.changes.size && common > most) [best, most] = [run, common];
    }
    return best;
  }

  /** What POST /api/traces says of a run. */
  describe(key: string, run: Run): Json {
    const { layers, heads, width, head_width, mlp_width, vocabulary, context } = this.about.config;
    return {
      id: key,
      model: this.name,
      text: this.tokenizer.decode(run.ids),
      tokens: run.ids.map((id) => this.token(id)) as Json,
      prompt: run.length,
      shape: { layers, heads, width, head_width, mlp_width, vocabulary, context },
      recommended: this.about.recommended,
      changes: [],
    };
  }
}

/** A name for these ids, and whatever else makes a run what it is. */
export const idOf = (ids: readonly number[], more = ''): string => hash(`${ids.join(' ')}|${more}`);

/** FNV-1a in 64 bits, in hexadecimal: a name for a question, the same in Python (`cutaway.serve.site`). */
export function hash(text: string): string {
  let found = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) found = ((found ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return found.toString(16).padStart(16, '0');
}
