/** What the server says of the contest, and which words of several translations are the same. */

import type { Entry, Look } from '../../lib/views';
import { t } from '../../state/preferences.svelte';

/** A model on this machine that translates. */
export interface Translator {
  name: string;
  kind: string;
  weights: number | null;
}

/** How the models of one kind did that benchmarks/contest.py trained. */
export interface Row {
  kind: string;
  weights: number;
  seconds: number | null;
  bleu: number;
  interval: [number, number];
  each: number[];
}

export interface Results {
  target: string;
  steps: number;
  test: number;
  beams: number;
  rows: Row[];
}

export interface About {
  models: Translator[];
  results: Results | null;
}

export const EXAMPLES = ['The black cat is under the table.', 'I saw a white house.', 'The dog is sleeping because it is tired.'];

/** A folder by its last name. */
export const called = (name: string): string => name.replace(/\/+$/, '').split('/').pop()!;
export const kindName = (kind: string): string => t(`contest.kind_${kind}`);

/** How many of the translations have each word. */
export function counted(entries: (Entry | null)[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const entry of entries) for (const { name } of entry?.words ?? []) found.set(name, (found.get(name) ?? 0) + 1);
  return found;
}

/** The words of the source that a word took most from, the largest share first. */
export const strongest = (look: Look, word: number): { at: number; share: number }[] =>
  look.weights[word]!.map((share, at) => ({ share, at })).sort((a, b) => b.share - a.share);
