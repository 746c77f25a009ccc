/** The examples that The Illustrated GPT-2 is known by (`cutaway.inspect.gallery`). */

import type { Engine } from '../engine';
import { line, logTotal, rounded, rows, softmax, type Json } from '../numbers';
import type { Run } from '../run';
import { headTable, looking } from './attention';
import type { Pause } from './sweep';
import { write } from './writing';

const ORDERS = ' robot must obey orders';
const SECOND_LAW = 'A robot must obey the orders given it';
const BEGUN = ['The', 'The dog ran and ran and ran and', 'Max and Lily and Max and Lily and', 'no no no no no no no no'];
const WRITTEN = 100;
const PHRASE = 4;
const ROUNDS = 3;

/** The positions of each word: one begins where a token begins with a space. */
function byWords(engine: Engine, run: Run): number[][] {
  const groups: number[][] = [];
  run.ids.forEach((id, at) => {
    if (!groups.length || engine.tokenizer.tokens[id]?.[0] === 32) groups.push([]);
    groups.at(-1)!.push(at);
  });
  return groups;
}

const spoken = (engine: Engine, run: Run, group: number[]): string => engine.tokenizer.decode(group.map((at) => run.ids[at]!)).trim();

export function words(engine: Engine, givenLayer: number, givenHead: number): Json {
  const run = engine.run(engine.ids(ORDERS));
  const [layer, head] = [run.layer(givenLayer), run.head(givenHead)];
  const groups = byWords(engine, run);
  const scores = headTable(run, `blocks.${layer}.attention.scores`, head);
  const weights = headTable(run, `blocks.${layer}.attention.weights`, head);
  const rowOf = (table: Float32Array, at: number): Float32Array => table.subarray(at * run.length, (at + 1) * run.length);
  const added = (row: Float32Array): Json => groups.map((group) => rounded(group.reduce((total, at) => total + row[at]!, 0)));
  const ends = groups.map((group) => group.at(-1)!);
  return {
    text: engine.tokenizer.decode(run.ids),
    layer,
    head,
    words: groups.map((group) => spoken(engine, run, group)),
    tokens: groups.map((group) => group.length),
    scores: ends.map((at) => ends.map((key) => rounded(rowOf(scores, at)[key]!))),
    unmasked: ends.map((at) => added(softmax(rowOf(scores, at)))),
    masked: ends.map((at) => added(rowOf(weights, at))),
  };
}

/** The position of the last token of the first place where a word stands. */
function endOf(engine: Engine, run: Run, word: string): number {
  const text = engine.tokenizer.decode(run.ids); // plain letters: characters are bytes
  const found = text.indexOf(word);
  const until = found >= 0 ? found + word.length : 1;
  let end = 0;
  return run.ids.findIndex((id) => (end += engine.tokenizer.tokens[id]!.length) >= until);
}

export function mixture(engine: Engine): Json {
  const run = engine.run(engine.ids(SECOND_LAW));
  const [at, goal] = [endOf(engine, run, ' it'), endOf(engine, run, ' robot')];
  const { layer, head } = looking(run, at, goal);
  const name = `blocks.${layer}.attention`;
  const wide = engine.about.config.head_width;
  return {
    tokens: run.ids.slice(0, at + 1).map((id) => engine.token(id)) as Json,
    position: at,
    toward: goal,
    layer,
    head,
    weights: line(run.headRow(`${name}.weights`, head, at).subarray(0, at + 1)),
    values: rows(headTable(run, `${name}.values`, head).subarray(0, (at + 1) * wide), wide),
    mixed: line(run.headRow(`${name}.heads`, head, at)),
  };
}

/** Where a loop that lasts to the end begins, and how long one round is; the shortest round there is. */
function stuck(ids: number[]): [number, number] | null {
  for (let period = 1; period <= Math.floor(ids.length / ROUNDS); period++) {
    let begins = ids.length - period;
    while (begins > 0 && ids[begins - 1] === ids[begins - 1 + period]) begins--;
    if (ids.length - begins >= ROUNDS * period) return [begins, period];
  }
  return null;
}

/** How much of a text ends a phrase that it has written before. */
function repeated(prompt: readonly number[], written: number[]): number {
  const ids = [...prompt, ...written];
  const known = new Set<string>();
  let again = 0;
  for (let end = 1; end <= ids.length; end++) {
    const phrase = ids.slice(Math.max(0, end - PHRASE), end).join(' ');
    if (end > prompt.length && known.has(phrase)) again++;
    known.add(phrase);
  }
  return written.length ? again / written.length : 0;
}

export async function loop(engine: Engine, seed: number, pause: Pause): Promise<Json> {
  let found: { run: Run; room: number; greedy: number[] } | null = null;
  for (const begun of BEGUN) {
    const run = engine.run(engine.ids(begun));
    const room = Math.min(WRITTEN, engine.about.config.context - run.length);
    const { ids: greedy } = await write(engine, run, { temperature: 0, top_k: 40, top_p: 1 }, room, 0, pause);
    if (!found || stuck(greedy)) found = { run, room, greedy };
    if (stuck(greedy)) break;
  }
  const { run, room, greedy } = found!;
  const { ids: drawn } = await write(engine, run, { temperature: 1, top_k: 40, top_p: 1 }, room, seed, pause);
  const told = (written: number[]): Json => {
    const [begins, period] = stuck(written) ?? [null, null];
    return { tokens: written.map((id) => engine.token(id)) as Json, begins, period, repeated: rounded(repeated(run.ids, written)) };
  };
  return { prompt: run.ids.map((id) => engine.token(id)) as Json, greedy: told(greedy), drawn: told(drawn), seed };
}

export function batch(engine: Engine): Json {
  const run = engine.run(engine.ids(ORDERS));
  const groups = byWords(engine, run);
  const names = groups.map((group) => spoken(engine, run, group));
  const found = groups.map((group, n) => {
    const following = groups[n + 1];
    const ids = following ? following.map((at) => run.ids[at]!) : [engine.about.config.end];
    const log = ids.reduce((total, id, i) => {
      const logits = run.logits(group.at(-1)! + i);
      return total + logits[id]! - logTotal(logits);
    }, 0);
    return { words: names.slice(0, n + 1), wanted: names[n + 1] ?? null, probability: rounded(Math.exp(log)), loss: -log };
  });
  const loss = found.reduce((total, one) => total + one.loss, 0) / found.length;
  return { examples: found.map((one) => ({ ...one, loss: rounded(one.loss) })), loss: rounded(loss) };
}
