/** What may come next, and what each layer already knew (`cutaway.inspect.next`, `.lens`). */

import { Cache } from '../cache';
import type { Engine } from '../engine';
import { likeliest, line, logTotal, rounded, softmax, type Json } from '../numbers';
import { Refusal } from '../refused';
import type { Run } from '../run';
import { check, draw, probabilities, shares, type Sampling } from '../sampling';
import type { Pause } from './sweep';

const SHOWN = 10;
const SKYLINE = 100;

export function predict(engine: Engine, run: Run, at: number, settings: Sampling, uniform: number | null): Json {
  check(settings);
  const position = run.position(at);
  const vocabulary = engine.tokenizer.size;
  const scores = run.logits(position);
  const own = shares(scores).subarray(0, vocabulary);
  const chance = probabilities(scores.slice(0, vocabulary), settings);
  const best = likeliest(own, SKYLINE);
  return {
    position,
    tokens: best.slice(0, SHOWN).map((id) => engine.token(id)) as Json,
    own: line(best.map((id) => own[id]!)),
    chance: line(best.map((id) => chance[id]!)),
    possible: chance.reduce((count, one) => count + (one > 0 ? 1 : 0), 0),
    vocabulary,
    drawn: uniform === null ? null : (engine.token(draw(chance, uniform)) as Json),
  };
}

/** How likely each token of each path was, after the text and the tokens before it. */
export function branches(engine: Engine, text: string, paths: number[][]): Json {
  return paths.map((path) => {
    const run = engine.run(engine.ids(text, path.slice(0, -1)));
    if (!(path.at(-1)! < engine.about.config.vocabulary)) throw new Refusal('mistake', `There is no token ${path.at(-1)}.`);
    return path.map((id, i) => {
      const place = run.length - path.length + i;
      const logits = place >= 0 ? run.logits(place) : engine.run(engine.ids(text)).logits(-1);
      return rounded(softmax(logits)[id]!);
    });
  });
}

/** How many tokens follow each one, the likeliest first. */
const WIDTHS = [4, 2, 1, 1];

/** What may come: the likeliest next tokens, after each of them the likeliest, and so on, as a tree (`cutaway.inspect.ahead`). */
export async function ahead(engine: Engine, run: Run, pause: Pause): Promise<Json> {
  const size = engine.tokenizer.size;
  const widths = WIDTHS.slice(0, Math.max(0, engine.about.config.context - run.length + 1));
  const ways: { id: number; parent: number | null; probability: number; path: number }[] = [];
  let rows: { parent: number | null; cache: Cache; logits: Float32Array }[] = [{ parent: null, cache: Cache.after(run, run.length + widths.length), logits: run.logits(-1) }];
  for (const [depth, width] of widths.entries()) {
    const level: typeof rows = [];
    for (const { parent, cache, logits } of rows) {
      const chances = shares(logits).subarray(0, size);
      for (const id of likeliest(chances, width)) {
        const way = { id, parent, probability: chances[id]!, path: (parent === null ? 1 : ways[parent]!.path) * chances[id]! };
        ways.push(way);
        if (depth + 1 === widths.length) continue;
        await pause();
        const next = cache.copy();
        level.push({ parent: ways.length - 1, cache: next, logits: next.read(id) });
      }
    }
    rows = level;
  }
  return { ways: ways.map(({ id, parent, probability, path }) => ({ token: engine.token(id) as Json, parent, probability: rounded(probability), path: rounded(path) })) };
}

export function lens(engine: Engine, run: Run, positions: number[], k: number, watch: number[], named: number | null): Json {
  const { layers, width } = engine.about.config;
  const size = engine.tokenizer.size;
  const names = ['residual.0', ...Array.from({ length: layers }, (_, layer) => `blocks.${layer}.residual`)];
  const followed = positions.map((at) => named ?? run.next(at, size));
  const words: { [id: string]: Json } = {};
  const table = <T>(): T[][] => names.map(() => []);
  const [rank, probability, top] = [table<number>(), table<Json>(), table<Json>()];
  const others = watch.map((id) => ({ token: engine.token(id) as Json, rank: table<number>(), probability: table<Json>() }));
  names.forEach((name, layer) => {
    positions.forEach((at, i) => {
      const logits = layer === names.length - 1 ? run.logits(at) : engine.model.score(engine.model.finalNorm(run.row(name, at, width)));
      const total = logTotal(logits);
      const tokens = logits.subarray(0, size);
      const place = (id: number): number => tokens.reduce((count, one) => count + (one > logits[id]! ? 1 : 0), 1);
      const share = (id: number): number | null => rounded(Math.exp(logits[id]! - total));
      rank[layer]!.push(place(followed[i]!));
      probability[layer]!.push(share(followed[i]!));
      top[layer]!.push(
        likeliest(tokens, k).map((id) => {
          words[id] ??= engine.token(id) as Json;
          return [id, share(id)];
        }),
      );
      watch.forEach((id, n) => {
        others[n]!.rank[layer]!.push(place(id));
        others[n]!.probability[layer]!.push(share(id));
      });
    });
  });
  return { positions, layers: names, chosen: followed.map((id) => engine.token(id)) as Json, rank, probability, top, words, watch: others as Json };
}
