/** The whole search tree of a beam search: every candidate that was looked at, kept or not (`cutaway.decoding.beams`). */

import { Cache } from '../cache';
import type { Engine } from '../engine';
import { likeliest, logTotal, rounded, type Json } from '../numbers';
import type { Run } from '../run';
import type { Pause } from './sweep';

interface Beam {
  ids: number[];
  logprob: number;
  total: number;
  reason: '' | 'end' | 'length';
  /** The node of the tree that it is. */
  node: number;
  cache: Cache | null;
  logits: Float32Array | null;
}

interface Node {
  id: number;
  parent: number | null;
  depth: number;
  token: Json;
  logprob: number | null;
  total: number | null;
  score: number | null;
  kept: boolean;
  reason: string;
  result: number | null;
  [name: string]: Json;
}

export async function beams(engine: Engine, run: Run, width: number, most: number, penalty: number, pause: Pause): Promise<Json> {
  const { context, end } = engine.about.config;
  const known = engine.tokenizer.size;
  const longest = Math.min(most, context - run.length);
  const score = (beam: Beam): number => beam.total / Math.max(1, beam.ids.length) ** penalty;
  const nodes: Node[] = [{ id: 0, parent: null, depth: 0, token: null, logprob: 0, total: 0, score: 0, kept: true, reason: '', result: null }];
  let open: Beam[] = longest > 0 ? [{ ids: [], logprob: 0, total: 0, reason: '', node: 0, cache: Cache.after(run, run.length + longest), logits: run.logits(-1) }] : [];
  let ended: Beam[] = [];
  while (open.length) {
    await pause();
    const candidates: { beam: Beam; id: number; total: number; plain: number }[] = [];
    for (const beam of open) {
      const top = Math.fround(logTotal(beam.logits!));
      const totals = beam.logits!.subarray(0, known).map((one) => Math.fround(one - top) + Math.fround(beam.total));
      for (const id of likeliest(totals, 2 * width)) candidates.push({ beam, id, total: totals[id]!, plain: Math.fround(beam.logits![id]! - top) });
    }
    candidates.sort((a, b) => b.total - a.total); // stable: of equals, the earlier beam's
    const made = candidates.slice(0, 2 * width).map(({ beam, id, total, plain }): Beam & { from: Beam } => {
      const ids = [...beam.ids, id];
      const reason = id === end ? 'end' : ids.length === longest ? 'length' : '';
      return { ids, logprob: plain, total, reason, node: 0, cache: null, logits: null, from: beam };
    });
    ended = [...ended, ...made.slice(0, width).filter((one) => one.reason)].sort((a, b) => score(b) - score(a)).slice(0, width);
    let next = made.filter((one) => !one.reason).slice(0, width);
    if (next.length && ended.length === width && score(next[0]!) <= score(ended.at(-1)!)) next = [];
    for (const one of made) {
      one.node = nodes.length;
      const kept = next.includes(one) || ended.includes(one);
      nodes.push({ id: one.node, parent: one.from.node, depth: one.ids.length, token: engine.token(one.ids.at(-1)!) as Json, logprob: rounded(one.logprob), total: rounded(one.total), score: rounded(score(one)), kept, reason: one.reason, result: null });
    }
    const left = new Map<Beam, number>();
    for (const one of next) left.set(one.from, (left.get(one.from) ?? 0) + 1);
    for (const one of next) {
      const others = left.get(one.from)! - 1; // the last that goes on from a text takes its cache over
      left.set(one.from, others);
      one.cache = others ? one.from.cache!.copy() : one.from.cache!;
      one.logits = null;
    }
    for (const one of next) one.logits = one.cache!.read(one.ids.at(-1)!);
    open = next;
  }
  const text = (ids: number[]): string => engine.tokenizer.decode(ids);
  const results = ended.map((beam, place): Json => {
    nodes[beam.node]!.result = place;
    const ids = beam.reason === 'end' ? beam.ids.slice(0, -1) : beam.ids;
    return { text: text(ids), ids, reason: beam.reason, score: rounded(score(beam)), node: beam.node };
  });
  if (!results.length) results.push({ text: '', ids: [], reason: 'length', score: 0, node: null });
  return { model: engine.name, prompt: run.ids.map((id) => engine.token(id)) as Json, beams: width, nodes, results };
}
