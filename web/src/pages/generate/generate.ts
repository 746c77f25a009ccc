/** What the server says of a text being written: `cutaway.inspect.choices`, `.cache` and `.beams`. */

import type { Token } from '../../lib/token';

export interface CacheStep {
  step: number;
  /** The token chosen; null where the text ended instead. */
  token: Token | null;
  read: number;
  reused: number;
  bytes_written: number;
  bytes_reused: number;
  multiplications: number;
  without: number;
}

export interface Cached {
  prompt: Token[];
  text: string;
  per_token_bytes: number;
  steps: CacheStep[];
  total: { multiplications: number; without: number; bytes: number };
}

export interface Candidate {
  id: number;
  logit: number;
  own: number;
  warm: number;
  chance: number;
  cut: '' | 'top_k' | 'top_p';
}

export interface Drawn {
  chosen: number;
  die: number | null;
  after_top_k: number;
  possible: number;
  candidates: Candidate[];
  line: [number, number, number][];
}

export interface Choices {
  seed: number;
  reason: string;
  words: Record<string, Token>;
  steps: Drawn[];
}

/** One text, written once, seen both ways. */
export interface Written {
  cache: Cached;
  choices: Choices;
}

/** Whether the text written belongs to the one shown: it was asked for a moment ago, and the reader may have gone on. */
export const belongs = (prompt: Token[], tokens: Token[]): boolean =>
  prompt.length === tokens.length && prompt.every((token, i) => token.id === tokens[i]!.id);
