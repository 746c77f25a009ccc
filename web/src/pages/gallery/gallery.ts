/** What the server says of the article's examples, and the texts they are about. */

import type { Token } from '../../lib/token';

export const ORDERS = ' robot must obey orders';
export const SECOND_LAW = 'A robot must obey the orders given it';
export const STORY = 'Once upon a time';

export interface FourWords {
  layer: number;
  head: number;
  words: string[];
  tokens: number[];
  scores: number[][];
  unmasked: number[][];
  masked: number[][];
}

export interface Mixture {
  tokens: Token[];
  position: number;
  toward: number;
  layer: number;
  head: number;
  weights: number[];
  values: number[][];
  mixed: number[];
}

export interface Written {
  tokens: Token[];
  begins: number | null;
  period: number | null;
  repeated: number;
}

export interface Loop {
  prompt: Token[];
  greedy: Written;
  drawn: Written;
  seed: number;
}

export interface Batch {
  examples: { words: string[]; wanted: string | null; probability: number; loss: number }[];
  loss: number;
}
