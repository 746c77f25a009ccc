/** Questions about the source together with its translation: they are carried through the model as one, and asked about by name. */

import { moment, type Trace } from '../../state/moment.svelte';
import { get, keepAsking, post, type Answer, type Query } from '../../state/server.svelte';

/** What ships: a model of one text gives way to it. */
export const SHIPPED = ['rnn'];

/** Sentences that each kind knows, with the translation that would be right. */
export const EXAMPLES: [string, string][] = [
  ['She bought a red car.', 'Elle a acheté une voiture rouge.'],
  ['I saw a white house.', "J'ai vu une maison blanche."],
  ['The dog is sleeping because it is tired.', "Le chien dort parce qu'il est fatigué."],
];

export const LAYOUTS = ['interleaved', 'halves'];

/** One colour for each head; the ninth begins anew. */
export const colourOf = (head: number): string => `var(--${['attention', 'value', 'key', 'token', 'query', 'neuron', 'position', 'residual'][head % 8]})`;

/** A view of the source and these tokens of the target. Null asks nothing. */
export function askPair<T>(question: () => { target: number[]; view: string; query?: Query } | null): Answer<T> {
  return keepAsking<T>(() => {
    const [asked, trace] = [question(), moment.trace];
    if (!asked || !trace) return null;
    const body = { model: trace.asked.model, text: trace.asked.text, more: asked.target };
    return async (signal) => {
      const { id } = await post<Trace>('traces', body, signal);
      return get<T>(`traces/${id}/${asked.view}`, asked.query, signal);
    };
  });
}
