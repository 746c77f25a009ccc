/** What the server says of tasks and answers. */

import type { Token } from '../../lib/token';

export interface Task {
  name: string;
  task: 'translation' | 'summary' | 'classification' | 'entailment' | 'similarity' | 'choice';
  there: boolean;
  /** How many texts it wants beside the one above. */
  others: number;
  /** How it is done without a model of its own. */
  by?: 'likelihood';
  /** It was trained in both directions, and must be told which. */
  two_way: boolean;
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
  /** Which of so many sequences it read is looked into: two texts in both orders, or one for each choice. */
  form: number;
  forms: number;
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

export const writes = (task: Task): boolean => task.task === 'translation' || task.task === 'summary';
