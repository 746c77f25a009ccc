/** The token's journey in steps: for each, the vectors and matrices of its picture (`cutaway.inspect.walk`). */

import type { Engine } from '../engine';
import { likeliest, rows as asRows, softmax, type Json, type Numbers } from '../numbers';
import type { Place } from '../places';
import { Refusal } from '../refused';
import type { Run } from '../run';
import { PROBABILITIES, STANDARDIZED, standardized } from './explain';
import { picture } from './weights';

const NEIGHBOURS = 3;
const MATRIX = 96;
const SHOWN = 10;

interface Part {
  role: string;
  name: string;
  axis: string;
  rows: number[];
  columns: number;
  values: Numbers;
}
type Picture = { parts: Part[]; words?: number[]; shape?: number[] };

/** A step as the model's map names it. */
export interface StepSpec {
  name: string;
  operation: string;
  group: string;
  places: string[];
  block: boolean;
}

class Here {
  constructor(
    readonly engine: Engine,
    readonly run: Run,
    readonly layer: number,
    readonly head: number,
    readonly position: number,
    readonly limit: number,
    readonly made: Place[],
    readonly steps: StepSpec[],
  ) {}

  get place(): Place {
    return this.made[0]!;
  }
  headed(name: string): boolean {
    return this.run.known.get(name)!.axes[0] === 'head';
  }
  /** What this token has: its vector, or every head's. */
  own(role: string, name: string): Part {
    if (!this.headed(name)) return this.tokens(role, name, [this.position]);
    const heads = Array.from({ length: this.run.model.config.heads }, (_, head) => head);
    return this.part(role, name, 'head', heads, (head) => this.run.headRow(name, head, this.position));
  }
  /** What this head has for some tokens, or where there are no heads they have themselves. */
  tokens(role: string, name: string, rows: number[]): Part {
    return this.part(role, name, 'position', rows, (at) => (this.headed(name) ? this.run.headRow(name, this.head, at) : this.run.row(name, at)));
  }
  /** This token's row of a table, one key a row. */
  row(role: string, name: string, keys: number[]): Part {
    const found = this.run.headRow(name, this.head, this.position);
    return this.part(role, name, 'position', keys, (key) => found.subarray(key, key + 1));
  }
  part(role: string, name: string, axis: string, rows: number[], of: (row: number) => Numbers): Part {
    const found = rows.map(of);
    const columns = found[0]?.length ?? 0;
    const values = new Float32Array(rows.length * columns);
    found.forEach((one, i) => values.set(one, i * columns));
    return { role, name, axis, rows, columns, values };
  }
  /** The tokens shown in a list of keys: all, or of a long text those with most weight and those nearest by. */
  attended(): number[] {
    const count = this.run.length;
    if (count <= this.limit) return Array.from({ length: count }, (_, i) => i);
    const weights = this.run.headRow(`blocks.${this.layer}.attention.weights`, this.head, this.position);
    const near = range(Math.max(0, this.position - Math.floor(this.limit / 3)), Math.min(count, this.position + Math.floor(this.limit / 6)));
    return [...new Set([...near, ...likeliest(weights, count)])].slice(0, this.limit).sort((a, b) => a - b);
  }
  weight(kind = 'weight'): Float32Array {
    return this.run.model.weights.get(`${this.place.module}.${kind}`);
  }
  likeliest(): { scores: Float32Array; best: number[] } {
    const scores = this.run.logits(this.position);
    const known = Math.min(this.engine.tokenizer.size, scores.length);
    return { scores, best: likeliest(scores.subarray(0, known), Math.min(SHOWN, known)) };
  }
}

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
const pick = (values: Numbers, rows: number[]): number[] => rows.map((row) => values[row]!);

function stack(at: Here): Picture {
  const { layers } = at.run.model.config;
  const last = new Map<string, string>();
  for (const step of at.steps) if (step.block) last.set(step.group, step.places.at(-1)!);
  const between = [...last.values()];
  const end = between.pop()!;
  const everywhere = (pattern: string): string[] => range(0, layers).map((layer) => pattern.replace('*', String(layer)));
  const through = (role: string, name: string, names: string[]): Part => at.part(role, name, 'layer', range(0, names.length), (n) => at.run.row(names[n]!, at.position));
  const ends = choose(at);
  return {
    parts: [through('stream', 'residual.0', ['residual.0', ...everywhere(end)]), ...between.map((one) => through(one.split('.').at(-1)!, one.replace('blocks.*.', ''), everywhere(one))), ...ends.parts],
    words: ends.words,
  };
}

function lookUp(at: Here): Picture {
  const matrix = at.weight();
  const { width } = at.run.model.config;
  const count = matrix.length / width;
  const ofText = at.place.inputs[0] === 'ids';
  const row = ofText ? at.run.ids[at.position]! : at.position;
  const first = Math.max(0, Math.min(row - NEIGHBOURS, count - 2 * NEIGHBOURS - 1));
  const rows = range(first, Math.min(count, first + 2 * NEIGHBOURS + 1));
  const table = at.part('matrix', `${at.place.module}.weight`, 'weight', rows, (one) => matrix.subarray(one * width, (one + 1) * width));
  return { parts: [table, at.own('out', at.place.name)], words: ofText ? rows : [], shape: [count, width] };
}

function norm(at: Here): Picture {
  const { name, module, inputs } = at.place;
  const learned = (role: string, kind: string): Part => at.part(role, `${module}.${kind}`, 'weight', [0], () => at.weight(kind));
  const standard = at.part('standard', `${name}${STANDARDIZED}`, 'position', [at.position], () => standardized(at.run, name, at.position));
  return { parts: [at.own('in', inputs[0]!), standard, learned('gain', 'weight'), learned('bias', 'bias'), at.own('out', name)] };
}

const show = (at: Here): Picture => ({ parts: at.made.map((one) => at.own(at.made.length === 1 ? 'out' : one.name.split('.').at(-1)!, one.name)) });

function linear(at: Here): Picture {
  const name = `${at.place.module}.weight`;
  const [outputs, inputs] = at.run.model.weights.tensors.find((one) => one.name === name)!.shape as [number, number];
  const drawn = picture(at.run.model.weights.get(name), [outputs, inputs], true, MATRIX);
  const strongest = drawn.low.map((low, i) => (-low > drawn.high[i]! ? low : drawn.high[i]!)); // a mean of many weights would be all grey
  const table: Part = { role: 'weights', name, axis: 'weight', rows: range(0, drawn.rows), columns: drawn.columns, values: strongest };
  return { parts: [at.own('in', at.place.inputs[0]!), table, ...show(at).parts], shape: [inputs, outputs] };
}

function score(at: Here): Picture {
  const shown = at.attended();
  const [queries = '', keys = ''] = at.place.inputs;
  return { parts: [at.tokens('query', queries, [at.position]), at.tokens('keys', keys, shown), at.row('out', at.place.name, shown)] };
}

function table(at: Here): Picture {
  const shown = at.attended();
  return { parts: [at.row('in', at.place.inputs[0]!, shown), at.row('out', at.place.name, shown)] };
}

function mix(at: Here): Picture {
  const [weights = '', values = ''] = at.place.inputs;
  const shown = at.attended().filter((key) => key <= at.position);
  return { parts: [at.row('weights', weights, shown), at.tokens('values', values, shown), at.tokens('out', at.place.name, [at.position])] };
}

function rank(at: Here): Picture {
  const { scores, best } = at.likeliest();
  const { width, vocabulary } = at.run.model.config;
  return { parts: [at.own('in', at.place.inputs[0]!), { role: 'out', name: 'logits', axis: 'id', rows: best, columns: 1, values: pick(scores, best) }], words: best, shape: [width, vocabulary] };
}

function choose(at: Here): Picture {
  const { scores, best } = at.likeliest();
  const part = (role: string, name: string, values: Numbers): Part => ({ role, name, axis: 'id', rows: best, columns: 1, values: pick(values, best) });
  return { parts: [part('in', 'logits', scores), part('out', PROBABILITIES, softmax(scores))], words: best };
}

const change = (at: Here): Picture => ({ parts: [at.own('in', at.place.inputs[0]!), at.own('out', at.place.name)] });
const add = (at: Here): Picture => ({ parts: [at.own('a', at.place.inputs[0]!), at.own('b', at.place.inputs[1]!), at.own('out', at.place.name)] });

const PICTURES: Record<string, (at: Here) => Picture> = { stack, token: () => ({ parts: [] }), 'look up': lookUp, add, norm, linear, show, score, mask: table, softmax: table, mix, rank, choose };

export function walk(engine: Engine, run: Run, steps: StepSpec[], name: string, layer: number, head: number, position: number, limit: number): Json {
  const step = steps.find((one) => one.name === name);
  if (!step) throw new Refusal('mistake', `The walk has no step '${name}'.`);
  const made = step.places.flatMap((one) => run.known.get(one.replace('*', String(run.layer(layer)))) ?? []);
  const at = new Here(engine, run, run.layer(layer), run.head(head), run.position(position), limit, made, steps);
  const { parts, words = [], shape = [] } = (PICTURES[step.operation] ?? change)(at);
  return {
    step: name,
    layer: at.layer,
    head: at.head,
    position: at.position,
    parts: parts.map(({ values, ...part }) => ({ ...part, values: asRows(values, part.columns) })),
    words: words.map((id) => engine.token(id)) as Json,
    shape,
  };
}
