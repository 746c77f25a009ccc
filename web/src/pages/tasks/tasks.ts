/** What the server says of tasks and answers. */

import type { Token } from '../../lib/token';

export interface Task {
  name: string;
  task: 'translation' | 'summary' | 'classification';
  there: boolean;
}

export interface Answer {
  id: string;
  model: string;
  task: Task['task'];
  tokens: Token[];
  shape: { layers: number; heads: number };
  text: string;
  whole: boolean;
  cut: number;
  label: string;
  probabilities: [string, number][];
  /** Positions in `tokens`. */
  source: number[];
  answer: number[];
  rows: number[];
}

export interface Between {
  id: string;
  layer: number;
  head: number | null;
  weights: number[][];
  rest: number[];
}
