/** How a number was made, as the server explains it. */

export interface Cell {
  name: string;
  position: number;
  head: number | null;
  column: number;
  kind: 'lookup' | 'add' | 'standard' | 'norm' | 'product' | 'score' | 'mask' | 'softmax' | 'mix' | 'copy' | 'activation' | 'given';
  /** null: minus infinity, where the mask falls. */
  value: number | null;
  total: number | null;
  parts: Record<string, number | null>;
  /** index, left, right, product; largest product first. */
  terms: [number, number, number, number][];
  count: number;
  rest: number;
  replaced: boolean;
}

/** Formulas are the same in every language. */
export const FORMULA: Partial<Record<Cell['kind'] | 'dot', string>> = {
  add: 'a + b',
  standard: '(x − mean) / √(var + ε)',
  norm: '(x − mean) / √(var + ε) × gain + bias',
  product: 'Σ xᵢ wᵢ + b',
  dot: 'Σ xᵢ wᵢ',
  score: 'q · k / √d',
  softmax: 'e^(s − max) / Σ e^(sᵢ − max)',
  mix: 'Σ weight × value',
  activation: 'x × share(x)',
};
