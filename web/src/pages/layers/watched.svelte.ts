/** The two words being watched: as typed, and the tokens they stand for in this model's vocabulary. */

import type { Token } from '../../lib/token';
import { moment } from '../../state/moment.svelte';
import { keepAsking, post, type Answer } from '../../state/server.svelte';

export interface Found {
  token: Token;
  /** The word is more than this token. */
  more: boolean;
}

/** A word inside a text has a space before it, so that form is tried first; then the word as it was typed. */
async function find(model: string, word: string, signal: AbortSignal): Promise<Found | null> {
  const forms = word.startsWith(' ') || !word ? [word] : [` ${word}`, word];
  const cuts = await Promise.all(forms.map((text) => post<Token[]>('tokens', { model, text }, signal)));
  const best = cuts.find((cut) => cut.length === 1) ?? cuts[0];
  return best?.[0] ? { token: best[0], more: best.length > 1 } : null;
}

export interface Words {
  typed: [string, string];
  found: (Found | null)[];
  ids: number[];
}

export function watched(): Words {
  const typed = $derived([moment.setting('watch_a', ''), moment.setting('watch_b', '')] as [string, string]);
  const asked: Answer<(Found | null)[]> = keepAsking(
    () => {
      const model = moment.trace?.model;
      const words = typed;
      if (!model) return null;
      return (signal) => Promise.all(words.map((word) => (word ? find(model, word, signal) : null)));
    },
    { wait: 120 },
  );
  return {
    get typed() {
      return typed;
    },
    get found() {
      return asked.value ?? [null, null];
    },
    get ids() {
      return [...new Set((asked.value ?? []).flatMap((one) => (one ? [one.token.id] : [])))];
    },
  };
}
