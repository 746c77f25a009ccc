/** What a step claims about its text, checked on the model being shown: the server finds the numbers (`cutaway.inspect.facts`). */

import { compose, type Language } from '../lib/catalogue';
import { count, number, percent } from '../lib/format';
import type { Token } from '../lib/token';

/** A kind of fact, `of`, and what it is about. */
export type Question = Record<string, string | number>;

export type Value =
  | { as: 'count' | 'percent' | 'number'; value: number }
  | { as: 'tokens'; value: Token[] }
  | { as: 'ids'; value: number[] }
  | { as: 'text'; value: string };
export type Fact = Record<string, Value | undefined>;
export type Facts = Record<string, Fact>;

/** A sentence, and the bounds that the numbers it speaks of must keep: `"look.weight": [0.2, 1]`, null for none. */
export interface Claim extends Record<Language, string> {
  if?: Record<string, [number | null, number | null]>;
}

export function valueOf(facts: Facts, name: string): Value | undefined {
  const [fact = '', field = ''] = name.split('.');
  return facts[fact]?.[field];
}

/** What a fact found, as plain words: what a guess is compared with. */
export function spoken(value: Value | undefined): string {
  if (!value) return '';
  if (value.as === 'tokens') return value.value.map((token) => token.text ?? '').join('').trim();
  return value.as === 'ids' || value.as === 'text' ? String(value.value) : WRITTEN[value.as](value.value);
}

export function holds(claim: Claim, facts: Facts): boolean {
  return Object.entries(claim.if ?? {}).every(([name, [low, high]]) => {
    const found = valueOf(facts, name);
    return typeof found?.value === 'number' && found.value >= (low ?? -Infinity) && found.value <= (high ?? Infinity);
  });
}

const WRITTEN = { count: (value: number) => count(value), percent: (value: number) => percent(value), number: (value: number) => number(value) };

/** A number as it is written, with what it is; or tokens, which are drawn; or plain words. */
export type Part = string | { text: string; value: number } | { tokens: Token[] };

/** A sentence in pieces, with the values it speaks of; `{cut.tokens|# token|# tokens}` takes the form its language wants. */
export function parts(sentence: string, facts: Facts, language: Language): Part[] {
  return sentence.split(/(\{\w+\.\w+[^}]*\})/).map((piece) => {
    const [, name = '', forms = ''] = /^\{(\w+\.\w+)([^}]*)\}$/.exec(piece) ?? [];
    const found = name ? valueOf(facts, name) : undefined;
    if (!found || found.as === 'ids' || found.as === 'text') return piece;
    if (found.as === 'tokens') return { tokens: found.value };
    return { text: forms ? compose(`{n${forms}}`, language, { n: found.value }) : WRITTEN[found.as](found.value), value: found.value };
  });
}
