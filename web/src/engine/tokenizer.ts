/** Text to tokens and back: GPT-2's first cut, then its merges, byte for byte what Python does (`cutaway.text`). */

import { Refusal } from './refused';

export interface Vocabulary {
  /** The bytes of every token by id, in hexadecimal. */
  tokens: string[];
  /** Which two neighbours become one token, in the order in which it is done: left, right, made. */
  merges: [number, number, number][];
  /** The id of each of the 256 bytes. */
  bytes: number[];
  specials: Record<string, number>;
  /** The id that each token has in GPT-2's vocabulary, where this one is a part of it. */
  gpt2: number[] | null;
}

/** An entry of the vocabulary as views tell it. */
export interface Token {
  id: number;
  text: string | null;
  bytes: string;
  gpt2?: number;
  [name: string]: number | string | null | undefined;
}

// White space is Unicode's, not JavaScript's, which counts the byte order mark in and U+0085 out.
const SPACE = '\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const CUT = new RegExp(`'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+$|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]`, 'gu');
/** Two halves are a character; a half that stands for a byte is that byte; any other is no character. */
const HALF = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const ESCAPED = /(?<![\ud800-\udbff])[\udc80-\udcff]+/g;
const REMEMBERED = 20_000;

export class Tokenizer {
  readonly tokens: Uint8Array[];
  readonly specials: Record<string, number>;
  readonly #vocabulary: Vocabulary;
  /** left x size + right -> which merge it is. */
  readonly #ranks = new Map<number, number>();
  readonly #words = new Map<string, number[]>();
  readonly #utf8 = new TextEncoder();
  readonly #strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
    this.specials = vocabulary.specials;
    this.tokens = vocabulary.tokens.map((hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
    vocabulary.merges.forEach(([left, right], rank) => {
      const pair = left * this.tokens.length + right;
      if (!this.#ranks.has(pair)) this.#ranks.set(pair, rank);
    });
  }

  get size(): number {
    return this.tokens.length;
  }

  encode(text: string): number[] {
    const ids: number[] = [];
    let at = 0;
    for (const half of text.matchAll(ESCAPED)) {
      this.#words_of(text.slice(at, half.index), ids);
      ids.push(...this.#merge(Uint8Array.from(half[0], (one) => one.charCodeAt(0) - 0xdc00)));
      at = half.index + half[0].length;
    }
    this.#words_of(text.slice(at), ids);
    return ids;
  }

  #words_of(text: string, ids: number[]): void {
    for (const [word] of text.replace(HALF, '\ufffd').matchAll(CUT)) {
      let found = this.#words.get(word);
      if (!found) {
        found = this.#merge(this.#utf8.encode(word));
        if (this.#words.size < REMEMBERED) this.#words.set(word, found);
      }
      for (const id of found) ids.push(id);
    }
  }

  /** The pair that is merged earliest becomes one, until none is left. */
  #merge(bytes: Uint8Array): number[] {
    const { bytes: single, merges } = this.#vocabulary;
    const ids = Array.from(bytes, (byte) => single[byte]!);
    const size = this.tokens.length;
    while (ids.length > 1) {
      let best = Infinity;
      for (let i = 0; i + 1 < ids.length; i++) {
        const rank = this.#ranks.get(ids[i]! * size + ids[i + 1]!);
        if (rank !== undefined && rank < best) best = rank;
      }
      if (best === Infinity) break;
      const [left, right, made] = merges[best]!;
      let kept = 0;
      for (let i = 0; i < ids.length; i++) {
        const both = ids[i] === left && ids[i + 1] === right && i + 1 < ids.length;
        ids[kept++] = both ? made : ids[i]!;
        if (both) i++;
      }
      ids.length = kept;
    }
    return ids;
  }

  bytes(ids: readonly number[]): Uint8Array {
    const parts = ids.map((id) => this.tokens[id] ?? new Uint8Array());
    const all = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  decode(ids: readonly number[]): string {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(this.bytes(ids));
  }

  /** An entry of the vocabulary; some models have more scores than their tokenizer has tokens: those have no bytes. */
  token(id: number): Token {
    const bytes = this.tokens[id] ?? new Uint8Array();
    let text: string | null;
    try {
      text = this.#strict.decode(bytes);
    } catch {
      text = null; // part of a character
    }
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const gpt2 = this.#vocabulary.gpt2?.[id];
    return gpt2 === undefined ? { id, text, bytes: hex } : { id, text, bytes: hex, gpt2 };
  }

  /** An entry of the vocabulary by its number, as `id:N`, or by its text. */
  named(given: string): number {
    const number = /^(?:id:)?(\d+)$/.exec(given);
    if (number) {
      const id = Number(number[1]);
      if (id < this.size) return id;
      throw new Refusal('mistake', `There is no token ${id}: the vocabulary has ${this.size} entries.`);
    }
    for (const spelled of given ? [given, given.replaceAll('·', ' '), ` ${given}`] : []) {
      if (spelled in this.specials) return this.specials[spelled]!;
      const ids = this.encode(spelled);
      if (ids.length === 1) return ids[0]!;
    }
    const pieces = this.encode(given).map((id) => this.token(id));
    const shown = pieces.map((one) => (one.text ?? one.bytes).replaceAll(' ', '·')).join('│');
    throw new Refusal('not_one_token', `'${given}' is not one token of this vocabulary but ${shown}.`, { text: given.slice(0, 80), pieces: shown.slice(0, 80) });
  }
}
