/** What `cutaway.inspect` says of the weights, and how the table is cut and sorted. */

import { known, t } from '../../state/preferences.svelte';

export interface Matrix {
  name: string;
  stored: string;
  what: string;
  block: number | null;
  shape: number[];
  count: number;
}

export interface Weights {
  model: string;
  total: number;
  per_block: number;
  blocks: number;
  tied: boolean;
  parts: Record<string, number>;
  matrices: Matrix[];
}

/** One of GPT-2's four sizes: its shape is enough to count it. */
export interface Size {
  name: string;
  layers: number;
  heads: number;
  width: number;
  total: number;
  parts: Record<string, number>;
  /** What the paper printed, in millions, and the count with GPT-1's vocabulary that gives it. */
  paper: { millions: number; gpt1_vocabulary: number; with_gpt1_vocabulary: number };
}

export interface Seen {
  model: string;
  picture: {
    name: string;
    shape: number[];
    rows: number;
    columns: number;
    mean: number[][];
    low: number[][];
    high: number[][];
    spread: number[][];
    total: { mean: number; std: number; min: number; max: number };
  };
  distribution: { name: string; edges: number[]; counts: number[]; quantiles: number[] };
}

export interface Small {
  model: string;
  pictures: Record<string, { mean: number[][]; std: number }>;
}

/** The kinds of work, as Python names them, with the colour each has everywhere. */
const KINDS: Record<string, { key: string; colour: string }> = {
  'token embedding': { key: 'token', colour: 'token' },
  'position embedding': { key: 'position', colour: 'position' },
  attention: { key: 'attention', colour: 'attention' },
  MLP: { key: 'mlp', colour: 'neuron' },
  'layer norms': { key: 'norm', colour: 'residual' },
  output: { key: 'output', colour: 'value' },
};

/** The key and the colour of a kind of work; one that only its model knows is called as the model calls it. */
export const work = (part: string): { key: string; colour: string } => KINDS[part] ?? { key: part, colour: 'residual' };
export const workName = (key: string): string => (known(`weights.kind_${key}`) ? t(`weights.kind_${key}`) : key);

export function kindOf(name: string): string {
  if (name.includes('norm')) return 'norm';
  for (const [part, kind] of [['attention', 'attention'], ['mlp', 'mlp'], ['output', 'output'], ['token', 'token']] as const) if (name.includes(part)) return kind;
  return 'position';
}

/** `blocks.3.mlp.widen.weight` -> `mlp_widen_weight`: the key of its words. */
export const wordOf = (name: string): string => name.replace(/^blocks\.\d+\./, '').replaceAll('.', '_');

export const ORDERS = ['place', 'count', 'name'] as const;
export type Order = (typeof ORDERS)[number];

export function cut(all: Matrix[], block: number | null, kind: string, find: string, order: Order): Matrix[] {
  const wanted = find.trim().toLowerCase();
  const found = all.filter(
    (one) =>
      (block === null || one.block === null || one.block === block) &&
      (kind === 'all' || kindOf(one.name) === kind) &&
      (!wanted || one.name.toLowerCase().includes(wanted) || one.stored.toLowerCase().includes(wanted)),
  );
  if (order === 'count') found.sort((a, b) => b.count - a.count);
  if (order === 'name') found.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  return found;
}
