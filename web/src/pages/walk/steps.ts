/** The steps of the walk: one list, in the order of the article. The address holds a step by its place here. */

export interface Band {
  /** Which part of the answer it draws. */
  role: string;
  /** What it is called: walk.v_NAME. */
  name: string;
  /** The colour of its kind. */
  kind: string;
  /** What is done with it: written before it. */
  sign?: '+' | '×' | '=' | '↓';
  /** Its rows follow each other in one strip, head after head. */
  flat?: boolean;
  /** Narrow things stand side by side. */
  beside?: boolean;
}

export interface Step {
  name: string;
  group: 'text' | 'attention' | 'mlp' | 'end';
  bands: Band[];
  /** The part whose number is explained before one is chosen. */
  main: string;
}

const residual = (role: string, name = 'stream', sign?: Band['sign']): Band => ({ role, name, kind: 'residual', sign });
const norm = (out: string): Band[] => [
  residual('in'),
  residual('standard', 'standard', '↓'),
  { role: 'gain', name: 'gain', kind: 'line-strong', sign: '×' },
  { role: 'bias', name: 'bias', kind: 'line-strong', sign: '+' },
  residual('out', out, '='),
];
const times = (into: Band, out: Band): Band[] => [
  into,
  { role: 'weights', name: 'matrix', kind: 'line-strong', sign: '×' },
  { ...out, sign: '=' },
];
const three = (more: Partial<Band>): Band[] => [
  { role: 'queries', name: 'query', kind: 'query', ...more },
  { role: 'keys', name: 'key', kind: 'key', ...more, sign: undefined },
  { role: 'values', name: 'value', kind: 'value', ...more, sign: undefined },
];

export const STEPS: Step[] = [
  { name: 'whole', group: 'text', main: 'out', bands: [] },
  { name: 'token', group: 'text', main: '', bands: [] },
  { name: 'embedding', group: 'text', main: 'out', bands: [
    { role: 'matrix', name: 'token_matrix', kind: 'token' },
    { role: 'out', name: 'token_row', kind: 'token', sign: '↓' },
  ] },
  { name: 'position', group: 'text', main: 'out', bands: [
    { role: 'matrix', name: 'position_matrix', kind: 'position' },
    { role: 'out', name: 'position_row', kind: 'position', sign: '↓' },
  ] },
  { name: 'entry', group: 'text', main: 'out', bands: [
    { role: 'a', name: 'token_row', kind: 'token' },
    { role: 'b', name: 'position_row', kind: 'position', sign: '+' },
    residual('out', 'stream', '='),
  ] },
  { name: 'attention_norm', group: 'attention', main: 'out', bands: norm('normed') },
  { name: 'made', group: 'attention', main: 'queries', bands: [
    ...times(residual('in', 'normed'), three({})[0]!).slice(0, 2),
    ...three({ flat: true, sign: '=' }),
  ] },
  { name: 'split', group: 'attention', main: 'queries', bands: three({ beside: true }) },
  { name: 'scores', group: 'attention', main: 'out', bands: [] },
  { name: 'mask', group: 'attention', main: 'out', bands: [] },
  { name: 'softmax', group: 'attention', main: 'out', bands: [] },
  { name: 'mix', group: 'attention', main: 'out', bands: [] },
  { name: 'merge', group: 'attention', main: 'out', bands: [
    { role: 'in', name: 'mixed', kind: 'value' },
    { role: 'out', name: 'merged', kind: 'value', sign: '=' },
  ] },
  { name: 'projection', group: 'attention', main: 'out', bands: times({ role: 'in', name: 'merged', kind: 'value' }, { role: 'out', name: 'attention_out', kind: 'attention' }) },
  { name: 'attention_residual', group: 'attention', main: 'out', bands: [
    residual('a'),
    { role: 'b', name: 'attention_out', kind: 'attention', sign: '+' },
    residual('out', 'stream', '='),
  ] },
  { name: 'mlp_norm', group: 'mlp', main: 'out', bands: norm('normed') },
  { name: 'widen', group: 'mlp', main: 'out', bands: times(residual('in', 'normed'), { role: 'out', name: 'hidden', kind: 'neuron' }) },
  { name: 'activation', group: 'mlp', main: 'out', bands: [
    { role: 'in', name: 'hidden', kind: 'neuron' },
    { role: 'out', name: 'neurons', kind: 'neuron', sign: '↓' },
  ] },
  { name: 'narrow', group: 'mlp', main: 'out', bands: times({ role: 'in', name: 'neurons', kind: 'neuron' }, { role: 'out', name: 'mlp_out', kind: 'neuron' }) },
  { name: 'mlp_residual', group: 'mlp', main: 'out', bands: [
    residual('a'),
    { role: 'b', name: 'mlp_out', kind: 'neuron', sign: '+' },
    residual('out', 'stream', '='),
  ] },
  { name: 'final_norm', group: 'end', main: 'out', bands: norm('last') },
  { name: 'logits', group: 'end', main: 'out', bands: [] },
  { name: 'choice', group: 'end', main: 'out', bands: [] },
];

export const find = (name: string): number => STEPS.findIndex((step) => step.name === name);
/** The steps taken in every block. */
export const FIRST = find('attention_norm');
export const LAST = find('mlp_residual');
export const inBlock = (step: number): boolean => step >= FIRST && step <= LAST;

export interface Stand {
  step: number;
  layer: number;
}

/** The next step of the journey, or the one before: block after block, then out. Null at its ends. */
export function move({ step, layer }: Stand, by: 1 | -1, layers: number): Stand | null {
  if (by === 1) {
    if (step === LAST && layer < layers - 1) return { step: FIRST, layer: layer + 1 };
    if (step === FIRST - 1) return { step: FIRST, layer: 0 };
  } else {
    if (step === FIRST && layer > 0) return { step: LAST, layer: layer - 1 };
    if (step === LAST + 1) return { step: LAST, layer: layers - 1 };
  }
  const next = step + by;
  return next >= 0 && next < STEPS.length ? { step: next, layer } : null;
}

const INSIDE = LAST - FIRST + 1;
export const journey = (layers: number): number => STEPS.length - 1 + INSIDE * (layers - 1);
/** How many steps have been taken. */
export function taken({ step, layer }: Stand, layers: number): number {
  return step < FIRST ? step : step <= LAST ? step + INSIDE * layer : step + INSIDE * (layers - 1);
}

/** One vector or table of a step's picture, as the server says it. */
export interface Part {
  role: string;
  name: string;
  axis: 'position' | 'head' | 'id' | 'layer' | 'weight';
  rows: number[];
  columns: number;
  values: number[][];
}

export interface View {
  step: string;
  layer: number;
  head: number;
  position: number;
  parts: Part[];
  words: import('../../lib/token').Token[];
  shape: number[];
}

/** A number pointed at: in which part, which row and column. */
export interface Spot {
  role: string;
  row: number;
  column: number;
}

/** What `explain` is asked for. */
export interface Target {
  name: string;
  position: number;
  column: number;
  head?: number;
}

const KEYED = /\.attention\.(scores|masked|weights)$/;
const HEADED = /\.attention\.(queries|keys|values|heads)$/;

/** Where the number at a spot stands in the run; null for weights, which nothing made. */
export function target(view: View, spot: Spot): Target | null {
  const { position, layer, head } = view;
  if (spot.role === 'table') {
    const name = `blocks.${layer}.attention.${view.step === 'mask' ? 'masked' : 'weights'}`;
    return { name, position: spot.row, column: spot.column, head };
  }
  const part = view.parts.find((one) => one.role === spot.role);
  const row = part?.rows[spot.row];
  if (!part || row === undefined || part.axis === 'weight') return null;
  if (part.axis === 'head') return { name: part.name, position, column: spot.column, head: row };
  if (part.axis === 'id') return { name: part.name, position, column: row };
  if (part.axis === 'layer') {
    const name = spot.role === 'middle' ? `blocks.${row}.residual.middle` : row ? `blocks.${row - 1}.residual` : 'residual.0';
    return { name, position, column: spot.column };
  }
  if (KEYED.test(part.name)) return { name: part.name, position, column: row, head };
  if (HEADED.test(part.name)) return { name: part.name, position: row, column: spot.column, head };
  return { name: part.name, position, column: spot.column };
}
