/** One piece of a run replaced after another, and the metric of each (`cutaway.inspect.sweep`, cell by cell). */

import type { Engine } from '../engine';
import { line, logTotal, rounded, softmax, type Json } from '../numbers';
import { Refusal, within } from '../refused';
import { Run } from '../run';

export type Pause = () => Promise<void>;

export interface Asked {
  corrupted: string;
  what: string;
  how: string;
  token: number | null;
  against: number | null;
  metric: string;
  position: number;
  layers: number[] | null;
  units: number[] | null;
}

/** What is replaced in a block: the place it is in, whether a unit is a head, a neuron or a token. */
const PIECES: Record<string, { name: (layer: number) => string; unit: 'token' | 'head' | 'neuron' }> = {
  residual: { name: (layer) => (layer ? `blocks.${layer - 1}.residual` : 'residual.0'), unit: 'token' },
  attention: { name: (layer) => `blocks.${layer}.attention.output`, unit: 'token' },
  mlp: { name: (layer) => `blocks.${layer}.mlp.output`, unit: 'token' },
  head: { name: (layer) => `blocks.${layer}.attention.heads`, unit: 'head' },
  'attention pattern': { name: (layer) => `blocks.${layer}.attention.weights`, unit: 'head' },
  neuron: { name: (layer) => `blocks.${layer}.mlp.activation`, unit: 'neuron' },
};

type Metric = { of: (logits: Float32Array) => number; told: string };

function metricOf(engine: Engine, { token, against, metric }: Asked, clean: Float32Array): Metric {
  const said = (id: number): string => {
    const { text } = engine.token(id);
    return text ? `'${text}'` : `id:${id}`;
  };
  if (metric === 'kl' || (token === null && !metric)) {
    const was = logTotal(clean);
    const of = (logits: Float32Array): number => {
      const now = logTotal(logits);
      return clean.reduce((total, one, i) => total + Math.exp(one - was) * (one - was - (logits[i]! - now)), 0);
    };
    return { of, told: 'the divergence (KL) from the clean prediction' };
  }
  if (token === null) throw new Refusal('mistake', `The metric ${metric} is about one token: name it.`);
  if (against !== null) {
    if (against === token) throw new Refusal('mistake', `The metric is the lead of ${said(token)} over itself, which is always 0: name two tokens.`);
    return { of: (logits) => logits[token]! - logits[against]!, told: `the logit of ${said(token)} less that of ${said(against)}` };
  }
  if (metric === 'loss') return { of: (logits) => logTotal(logits) - logits[token]!, told: `the loss of ${said(token)}` };
  if (metric === 'rank') return { of: (logits) => logits.reduce((count, one) => count + (one > logits[token]! ? 1 : 0), 1), told: `the rank of ${said(token)}` };
  return { of: (logits) => softmax(logits)[token]!, told: `the probability of ${said(token)}` };
}

export async function sweep(engine: Engine, clean: Run, asked: Asked, pause: Pause): Promise<Json> {
  const piece = PIECES[asked.what];
  if (!piece) throw new Refusal('mistake', `There is no sweep of '${asked.what}'. Known: ${Object.keys(PIECES).join(', ')}.`);
  if (!['patch', 'resample', 'zero'].includes(asked.how)) throw new Refusal('mistake', `Pieces are not replaced by '${asked.how}'. Known: patch, resample, zero.`);
  if (!asked.corrupted !== (asked.how === 'zero')) throw new Refusal('mistake', `To ${asked.how}, a sweep needs ${asked.how === 'zero' ? 'one text' : 'a corrupted text beside the clean one'}.`);
  const other = asked.corrupted ? engine.run(engine.ids(asked.corrupted)) : null;
  if (other && other.length !== clean.length) throw new Refusal('mistake', `The two texts must have the same number of tokens: the clean one has ${clean.length}, the corrupted one ${other.length}. Replace words by others of as many tokens.`);
  const { layers, heads, mlp_width } = engine.about.config;
  const counts = { token: clean.length, head: heads, neuron: mlp_width };
  const rows = asked.layers ?? Array.from({ length: layers }, (_, i) => i);
  const units = asked.units ?? Array.from({ length: counts[piece.unit] }, (_, i) => i);
  for (const unit of units) within(piece.unit, unit, counts[piece.unit]);
  const at = clean.position(asked.position);
  const metric = metricOf(engine, asked, clean.logits(at));
  const numbers = [clean, other].map((run) => (run ? metric.of(run.logits(at)) : null));
  const [base, source] = asked.how === 'patch' ? [other!, clean] : [clean, other];
  const start = asked.how === 'patch' ? numbers[1]! : numbers[0]!;
  const values: number[][] = [];
  for (const layer of rows) {
    const name = piece.name(clean.layer(layer));
    const made: number[] = [];
    for (const unit of units) {
      await pause();
      const run = new Run(engine.model, base.ids, new Map([[name, [(value: Float32Array) => replace(value, source?.get(name) ?? null, base, name, piece.unit, unit)]]]), base);
      made.push(metric.of(run.logits(at)));
    }
    values.push(made);
  }
  const apart = other ? numbers[0]! - numbers[1]! : 0;
  const tokens = (run: Run | null): Json => (run?.ids.map((id) => engine.token(id)) ?? []) as Json;
  return {
    what: asked.what,
    how: asked.how,
    exact: true,
    metric: metric.told,
    layers: rows,
    units,
    values: values.map(line),
    clean: rounded(numbers[0]!),
    corrupted: other ? rounded(numbers[1]!) : null,
    clean_tokens: tokens(clean),
    corrupted_tokens: tokens(other),
    axes: ['layer', piece.unit],
    base: rounded(start),
    recovered: other ? values.map((row) => line(row.map((one) => ((one - start) / apart) * (asked.how === 'patch' ? 1 : -1)))) : null,
  };
}

/** Put a piece of another run, or nothing, in its place. */
function replace(value: Float32Array, source: Float32Array | null, run: Run, name: string, kind: 'token' | 'head' | 'neuron', unit: number): void {
  const wide = run.columns(name);
  const put = (from: number, to: number): void => void (source ? value.set(source.subarray(from, to), from) : value.fill(0, from, to));
  if (kind === 'token') put(unit * wide, (unit + 1) * wide);
  else if (kind === 'head') put(unit * run.length * wide, (unit + 1) * run.length * wide);
  else for (let at = 0; at < run.length; at++) put(at * wide + unit, at * wide + unit + 1);
}
