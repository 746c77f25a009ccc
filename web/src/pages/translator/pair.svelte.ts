/** Questions about the source together with its translation: they are carried through the model as one, and asked about by name. */

import { moment, type Trace } from '../../state/moment.svelte';
import type { Table } from '../../lib/binary';
import { get, getTable, keepAsking, post, type Answer, type Query } from '../../state/server.svelte';

/** What ships, in the order in which they were invented: a model of one text gives way to one of them. */
export const SHIPPED = ['rnn-plain', 'rnn', 'transformer'];

/** The message that says what kind of machine it is. */
export const kindOf = (name: string): string => `translator.model_${name.replace('-', '_')}`;

/** Sentences that each kind knows, with the translation that would be right. */
export const EXAMPLES: [string, string][] = [
  ['She bought a red car.', 'Elle a acheté une voiture rouge.'],
  ['I saw a white house.', "J'ai vu une maison blanche."],
  ['The dog is sleeping because it is tired.', "Le chien dort parce qu'il est fatigué."],
];

export const LAYOUTS = ['interleaved', 'halves'];

/** One colour for each head; the ninth begins anew. */
export const colourOf = (head: number): string => `var(--${['attention', 'value', 'key', 'token', 'query', 'neuron', 'position', 'residual'][head % 8]})`;

interface Question {
  target: number[];
  view: string;
  query?: Query;
}

/** A view of the source and these tokens of the target. Null asks nothing. */
export const askPair = <T>(question: () => Question | null): Answer<T> => ask<T>(question, get);

/** The same for a table of numbers; it says of which texts, and what was asked. */
export const askPairTable = (question: () => Question | null): Answer<Table & { of: string; query: Query }> =>
  ask(question, async (path, query, signal, target) => ({ ...(await getTable(path, query, signal)), of: pairOf(target), query }));

/** Which two texts, carried through which model. */
export const pairOf = (target: number[]): string => JSON.stringify([moment.trace?.asked.model, moment.trace?.asked.text, target]);

function ask<T>(question: () => Question | null, read: (path: string, query: Query, signal: AbortSignal, target: number[]) => Promise<T>): Answer<T> {
  return keepAsking<T>(() => {
    const [asked, trace] = [question(), moment.trace];
    if (!asked || !trace) return null;
    const body = { model: trace.asked.model, text: trace.asked.text, more: asked.target };
    return async (signal) => {
      const { id } = await post<Trace>('traces', body, signal);
      return read(`traces/${id}/${asked.view}`, asked.query ?? {}, signal, asked.target);
    };
  });
}
