/** What if: a head or neuron taken out, a direction added, a value brought from another text (`cutaway.inspect.change`). */

import { idOf, type Engine } from '../engine';
import { length, likeliest, line, logTotal, rounded, softmax, type Json } from '../numbers';
import { placeOf } from '../places';
import { Refusal, within } from '../refused';
import type { Change, Run } from '../run';

export interface Wanted {
  kind: string;
  layer?: number;
  head?: number | null;
  neuron?: number;
  position?: number | null;
  toward?: string;
  away?: string;
  strength?: number;
  token?: string;
  name?: string;
  text?: string;
  source?: number | null;
}

const FIELDS: Record<string, string[]> = {
  ablate_head: ['layer', 'head', 'position'],
  ablate_neuron: ['layer', 'neuron', 'position'],
  steer: ['layer', 'toward', 'away', 'strength', 'position'],
  toward: ['layer', 'token', 'strength', 'position'],
  patch: ['name', 'text', 'position', 'source', 'head'],
};
const USUAL: Record<string, Json> = { position: null, away: '', strength: 1, source: null };

/** What is changed, and how. */
function made(engine: Engine, given: Wanted, tokens: number): { name: string; change: Change } {
  const { layers, heads, head_width, mlp_width, width } = engine.about.config;
  const at = given.position === null || given.position === undefined ? null : within('token', given.position, tokens);
  const rows = at === null ? Array.from({ length: tokens }, (_, i) => i) : [at];
  const layer = given.layer === undefined ? 0 : within('layer', given.layer, layers);
  switch (given.kind) {
    case 'ablate_head': {
      const head = within('head', given.head ?? 0, heads);
      return { name: `blocks.${layer}.attention.heads`, change: (value) => rows.forEach((row) => value.fill(0, (head * tokens + row) * head_width, (head * tokens + row + 1) * head_width)) };
    }
    case 'ablate_neuron': {
      const neuron = within('neuron', given.neuron ?? 0, mlp_width);
      return { name: `blocks.${layer}.mlp.activation`, change: (value) => rows.forEach((row) => (value[row * mlp_width + neuron] = 0)) };
    }
    case 'steer': {
      const name = `blocks.${layer}.residual`;
      const end = (text: string): Float32Array => {
        const run = engine.run(engine.ids(text));
        return run.row(name, run.length - 1, width);
      };
      const [toward, away] = [end(given.toward ?? ''), given.away ? end(given.away) : null];
      const vector = toward.map((one, i) => (one - (away ? away[i]! : 0)) * (given.strength ?? 1));
      return { name, change: (value) => rows.forEach((row) => vector.forEach((one, i) => (value[row * width + i]! += one))) };
    }
    case 'toward': {
      const id = engine.tokenizer.named(given.token ?? '');
      const row = engine.model.output.subarray(id * width, (id + 1) * width);
      const size = length(row);
      const push = (value: Float32Array, at: number): void => {
        const long = length(value.subarray(at * width, (at + 1) * width));
        row.forEach((one, i) => (value[at * width + i]! += (one / size) * (given.strength ?? 1) * long));
      };
      return { name: `blocks.${layer}.residual`, change: (value) => rows.forEach((at) => push(value, at)) };
    }
    case 'patch':
      return patch(engine, given, at, tokens);
  }
  throw new Refusal('mistake', `There is no change of the kind '${given.kind}'.`);
}

function patch(engine: Engine, given: Wanted, at: number | null, tokens: number): { name: string; change: Change } {
  const run = engine.run(engine.ids(given.text ?? ''));
  const name = given.name ?? '';
  const place = placeOf(run.known, name);
  const square = place.axes.at(-1) === 'key';
  if ((at === null || square) && run.length !== tokens) throw new Refusal('patch_lengths', `The other text has ${run.length} tokens, this one ${tokens}.`, { other: run.length, tokens });
  const divided = place.axes[0] === 'head';
  if (typeof given.head === 'number' && !divided) throw new Refusal('mistake', `${name} is not divided into heads: leave the head out.`);
  const heads = !divided ? [0] : typeof given.head === 'number' ? [run.head(given.head)] : Array.from({ length: engine.about.config.heads }, (_, i) => i);
  const source = at === null ? null : within('token', given.source ?? given.position!, run.length);
  const pairs = at === null || source === null ? run.ids.map((_, i): [number, number] => [i, i]) : [[at, source] as [number, number]];
  const value = name === 'logits' ? run.get('logits') : run.get(name);
  const wide = run.columns(name);
  return {
    name,
    change: (into) => {
      for (const head of heads) for (const [to, from] of pairs) into.set(value.subarray((head * run.length + from) * wide, (head * run.length + from + 1) * wide), (head * tokens + to) * wide);
    },
  };
}

/** The run with these changes, and the name it is remembered by; without any it is the run itself. */
export function changedRun(engine: Engine, key: string, before: Run, given: Wanted[]): [string, Run] {
  if (!given.length) return [key, before];
  const changes = new Map<string, Change[]>();
  for (const one of given) {
    const { name, change } = made(engine, one, before.length);
    changes.set(name, [...(changes.get(name) ?? []), change]);
  }
  const name = idOf(before.ids, JSON.stringify(given));
  return [name, engine.run(before.ids, changes, name)];
}

function candidates(engine: Engine, logits: Float32Array, k: number): Json[] {
  const shares = softmax(logits);
  return likeliest(logits.subarray(0, engine.tokenizer.size), k).map((id, i) => ({ token: engine.token(id) as Json, logit: rounded(logits[id]!), probability: rounded(shares[id]!), rank: i + 1 }));
}

/** What the changes of one run changed against another over the same text. */
export function change(engine: Engine, key: string, before: Run, given: Wanted[], at: number, k: number): Json {
  const [name, after] = changedRun(engine, key, before, given);
  const position = before.position(at);
  const { layers, width } = engine.about.config;
  const kl = before.ids.map((_, token) => (before === after ? 0 : divergence(before.logits(token), after.logits(token))));
  const stream = Array.from({ length: layers }, (_, layer) =>
    before.ids.map((_, token) => {
      const [was, now] = [before, after].map((run) => run.row(`blocks.${layer}.residual`, token, width)) as [Float32Array, Float32Array];
      return rounded(length(now.map((one, i) => one - was[i]!)) / length(was));
    }),
  );
  const [was, now] = [before.logits(position), after.logits(position)];
  const [first, then] = [softmax(was), softmax(now)];
  const size = engine.tokenizer.size;
  const moves = then.subarray(0, size).map((one, id) => Math.abs(one - first[id]!));
  const [told, now_told] = [candidates(engine, was, k), candidates(engine, now, k)];
  const idsOf = (logits: Float32Array): number => likeliest(logits.subarray(0, size), 1)[0]!;
  return {
    changes: given.map((one) => ({ kind: one.kind, ...Object.fromEntries((FIELDS[one.kind] ?? []).map((field) => [field, ((one as unknown as Record<string, Json>)[field] ?? USUAL[field] ?? null) as Json])) })),
    position,
    kl: line(kl),
    stream,
    before: told,
    after: now_told,
    moved: likeliest(moves, k).map((id) => ({ token: engine.token(id) as Json, before: rounded(first[id]!), after: rounded(then[id]!) })),
    id: name,
    top_changed: idsOf(was) !== idsOf(now),
  };
}

/** How much information is lost by taking one distribution for the other, in nats. */
function divergence(before: Float32Array, after: Float32Array): number {
  const [was, now] = [logTotal(before), logTotal(after)];
  let total = 0;
  for (let i = 0; i < before.length; i++) {
    const log = before[i]! - was;
    total += Math.exp(log) * (log - (after[i]! - now));
  }
  return Math.max(0, total);
}
