/** The walk over a model's map: where one stands, and how the parts of a step are drawn by their operation and kind. */

import { pattern, thing, type ModelMap, type Step } from '../../state/map';
import { known, t } from '../../state/preferences.svelte';

export type { ModelMap, Step };

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

/** The colour of a kind of thing; others are grey, as the stream is. */
const COLOURS: Record<string, string> = {
  token: 'token', position: 'position', query: 'query', key: 'key', value: 'value', mixed: 'value', merged: 'value',
  score: 'attention', masked: 'attention', weight: 'attention', attention_out: 'attention', hidden: 'neuron', neurons: 'neuron', mlp_out: 'neuron',
};

/** What is done with a part, written before it, by the operation of the step. */
const SIGNS: Record<string, Record<string, string>> = {
  'look up': { out: '↓' },
  add: { b: '+', out: '=' },
  norm: { standard: '↓', gain: '×', bias: '+', out: '=' },
  linear: { weights: '×' },
  activate: { out: '↓' },
  merge: { out: '=' },
};

export interface Drawn {
  part: Part;
  /** What it is called, and the colour of its kind. */
  label: string;
  kind: string;
  sign: string;
  /** Its rows follow each other in one strip, head after head. */
  flat: boolean;
  /** A weight between 0 and 1. */
  share: boolean;
}

/** What a part is called, and its colour. */
export function called(map: ModelMap, step: Step, part: Part): { label: string; kind: string } {
  if (part.role === 'matrix') {
    const kind = thing(map, step.places[0]!)?.kind ?? '';
    return { label: known(`walk.v_${kind}_matrix`) ? t(`walk.v_${kind}_matrix`) : t('walk.v_matrix'), kind: COLOURS[kind] ?? 'residual' };
  }
  if (part.axis === 'weight') return { label: t(`walk.v_${part.role === 'weights' ? 'matrix' : part.role}`), kind: 'line-strong' };
  if (part.role === 'standard') return { label: t('walk.v_standard'), kind: 'residual' };
  const kind = thing(map, part.name)?.kind ?? '';
  return { label: known(`walk.v_${kind}`) ? t(`walk.v_${kind}`) : part.name, kind: COLOURS[kind] ?? 'residual' };
}

export const isShare = (map: ModelMap, part: Part): boolean => part.name === 'probabilities' || thing(map, part.name)?.operation === 'softmax';

/** Whether the part is what the step makes, and not what it is made of. */
export const isMade = (step: Step, part: Part): boolean => part.axis !== 'weight' && step.places.includes(pattern(part.name));

/** The parts of a step with how each is drawn, one under the other. */
export function drawn(map: ModelMap, step: Step, view: View): Drawn[] {
  const first = view.parts.find((part) => isMade(step, part));
  return view.parts.map((part) => ({
    part,
    ...called(map, step, part),
    sign: SIGNS[step.operation]?.[part.role] ?? (step.operation === 'linear' && part === first ? '=' : part.role === 'out' && !SIGNS[step.operation] ? '↓' : ''),
    flat: step.operation === 'linear' && part.axis === 'head',
    share: isShare(map, part),
  }));
}

/** Steps in which a token attends to the others. */
export const attends = (step: Step): boolean => ['score', 'mask', 'softmax', 'mix'].includes(step.operation);
/** Those that show the text and the vocabulary. */
export const isEnd = (step: Step): boolean => ['token', 'rank', 'choose'].includes(step.operation);
/** The table of all tokens, for steps that have one. */
export const tableOf = (step: Step, layer: number): string | null => (step.operation === 'mask' || step.operation === 'softmax' ? step.places[0]!.replace('*', String(layer)) : null);

/** What the catalogues know a step by: a step of attention to the source by that of any attention, where it has no words of its own. */
const wordOf = (step: Step, word: (name: string) => string, others: string[]): string | undefined =>
  step.named ? [step.name, ...others.map((other) => step.name.replace(/^cross_/, other))].map(word).find(known) : undefined;
export function title(step: Step): string {
  const word = wordOf(step, (name) => `walk.s_${name}`, ['', 'attention_']);
  return word ? t(word) : step.name;
}
/** The message that says what happens: of this step, or of its operation where the catalogues do not know it. */
export const sentence = (step: Step): string => wordOf(step, (name) => `walk.say_${name}`, ['']) ?? does(step.operation.replace(' ', '_'));
const does = (operation: string): string => (known(`walk.op_${operation}`) ? `walk.op_${operation}` : 'walk.op_other');
export const groupName = (group: string): string => (known(`walk.group_${group}`) ? t(`walk.group_${group}`) : group);

/** The step of an operation; the first where there is none. */
export const find = (map: ModelMap, operation: string): number => Math.max(0, map.steps.findIndex((step) => step.operation === operation));
/** The steps taken in every block: the first and the last; without a stack none. */
export function inside(map: ModelMap): { first: number; last: number } {
  const first = map.steps.findIndex((step) => step.block);
  return { first, last: first < 0 ? -2 : map.steps.findLastIndex((step) => step.block) };
}

export interface Stand {
  step: number;
  layer: number;
}

/** The next step of the journey, or the one before: block after block, then out. Null at its ends. */
export function move({ step, layer }: Stand, by: 1 | -1, map: ModelMap): Stand | null {
  const { first, last } = inside(map);
  if (by === 1) {
    if (step === last && layer < map.layers - 1) return { step: first, layer: layer + 1 };
    if (step === first - 1) return { step: first, layer: 0 };
  } else {
    if (step === first && layer > 0) return { step: last, layer: layer - 1 };
    if (step === last + 1 && first >= 0) return { step: last, layer: map.layers - 1 };
  }
  const next = step + by;
  return next >= 0 && next < map.steps.length ? { step: next, layer } : null;
}

const again = (map: ModelMap): number => (map.layers ? inside(map).last - inside(map).first + 1 : 0);
export const journey = (map: ModelMap): number => map.steps.length - 1 + again(map) * Math.max(0, map.layers - 1);
/** How many steps have been taken. */
export function taken({ step, layer }: Stand, map: ModelMap): number {
  const { first, last } = inside(map);
  if (first < 0 || step < first) return step;
  return step + again(map) * (step <= last ? layer : map.layers - 1);
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

/** Where the number at a spot stands in the run; null for weights, which nothing made. */
export function target(map: ModelMap, step: Step, view: View, spot: Spot): Target | null {
  const { position, layer, head } = view;
  const headed = (name: string): { head?: number } => (thing(map, name)?.axes[0] === 'head' ? { head } : {});
  if (spot.role === 'table') {
    const name = tableOf(step, layer)!;
    return { name, position: spot.row, column: spot.column, ...headed(name) };
  }
  const part = view.parts.find((one) => one.role === spot.role);
  const row = part?.rows[spot.row];
  if (!part || row === undefined || part.axis === 'weight' || part.axis === 'layer') return null;
  if (part.axis === 'head') return { name: part.name, position, column: spot.column, head: row };
  if (part.axis === 'id') return { name: part.name, position, column: row };
  const keyed = thing(map, part.name)?.axes.at(-1) === 'key';
  return { name: part.name, ...(keyed ? { position, column: row } : { position: row, column: spot.column }), ...headed(part.name) };
}
