/** How each token was chosen, what the cache spared, and the tree of a beam search. */

import { Cache } from '../cache';
import type { Engine } from '../engine';
import { highest, likeliest, rounded, type Json } from '../numbers';
import { Random, checksum } from '../random';
import type { Run } from '../run';
import { check, draw, greedy, keepTopK, probabilities, shares, warm, type Sampling } from '../sampling';
import type { Pause } from './sweep';

/** So many pieces of the line of probabilities are named, the largest; the rest lies between them. */
const PIECES = 48;
/** So many tokens are written before others are asked whether they want something. */
const AT_ONCE = 4;

export interface Chosen {
  /** The scores of all entries; some models have more of them than there are tokens. */
  whole: Float32Array;
  logits: Float32Array;
  uniform: number;
  token: number;
}

export interface Written {
  ids: number[];
  reason: 'end' | 'length';
  explanation: string;
  /** How many times the model was read: the prompt first. */
  readings: number;
}

/** Continue a text as `lm.generate` does, with the same random numbers. */
export async function write(engine: Engine, run: Run, settings: Sampling, most: number, seed: number, pause: Pause, watch: (chosen: Chosen) => void = () => undefined): Promise<Written> {
  check(settings);
  const { context, end } = engine.about.config;
  const size = engine.tokenizer.size;
  const random = new Random([seed, 0, checksum(run.ids)]);
  const room = Math.min(most, context - run.length);
  const cache = room > 1 ? Cache.after(run, run.length + room) : null;
  const ids: number[] = [];
  let readings = 0;
  let logits = run.logits(-1);
  while (ids.length < room) {
    if (ids.length) logits = cache!.read(ids.at(-1)!);
    readings++;
    if (readings % AT_ONCE === 0) await pause();
    const uniform = random.random();
    const known = logits.subarray(0, size);
    const token = greedy(settings) ? known.indexOf(highest(known)) : draw(probabilities(known.slice(), settings), uniform);
    watch({ whole: logits, logits: known, uniform, token });
    if (token === end) return { ids, reason: 'end', explanation: 'The model wrote its end token.', readings };
    ids.push(token);
  }
  const thousands = (n: number): string => n.toLocaleString('en-US');
  const explanation = ids.length >= most ? `It has the ${thousands(most)} tokens that were asked for.` : `The context of ${thousands(context)} tokens is full.`;
  return { ids, reason: 'length', explanation, readings };
}

/** One text, written once: how each token was chosen, and what the cache spared. */
export async function writing(engine: Engine, run: Run, given: Sampling, seed: number, most: number, k: number, pause: Pause): Promise<Json> {
  const steps: Json[] = [];
  const named = new Set<number>();
  const written = await write(engine, run, given, most, seed, pause, (chosen) => steps.push(choice(chosen, given, k, named)));
  const words = Object.fromEntries([...named].sort((a, b) => a - b).map((id) => [String(id), engine.token(id) as Json]));
  const { reason, explanation, ids } = written;
  return { choices: { words, steps, seed, reason, explanation, text: engine.tokenizer.decode(ids) }, cache: counted(engine, run, written) };
}

function choice({ whole, logits, uniform, token }: Chosen, settings: Sampling, k: number, named: Set<number>): Json {
  const own = shares(whole);
  const warmed = shares(warm(logits, settings.temperature));
  const chance = probabilities(logits.slice(), settings);
  const sure = greedy(settings);
  const topK = sure ? 1 : settings.top_k;
  const left = topK === null ? logits : keepTopK(logits.slice(), topK);
  const shown = likeliest(logits, k);
  if (!shown.includes(token)) shown.push(token);
  const pieces = [...new Set([...likeliest(chance, PIECES), token])].filter((id) => chance[id]! > 0).sort((a, b) => a - b);
  const ends = new Float64Array(chance.length);
  let total = 0;
  for (let i = 0; i < chance.length; i++) ends[i] = total += chance[i]!;
  for (const id of [...shown, ...pieces]) named.add(id);
  return {
    chosen: token,
    die: sure ? null : rounded(uniform),
    after_top_k: left.reduce((count, one) => count + (Number.isFinite(one) ? 1 : 0), 0),
    possible: chance.reduce((count, one) => count + (one > 0 ? 1 : 0), 0),
    candidates: shown.map((id) => ({
      id,
      logit: rounded(logits[id]!),
      own: rounded(own[id]!),
      warm: rounded(warmed[id]!),
      chance: rounded(chance[id]!),
      cut: chance[id]! > 0 ? '' : Number.isFinite(left[id]!) ? 'top_p' : 'top_k',
    })),
    line: pieces.map((id) => [id, rounded(id ? ends[id - 1]! / total : 0), rounded(ends[id]! / total)]),
  };
}

/** The matrix products that read so many tokens and score the next one, counted as their tables are drawn. */
function multiplications(engine: Engine, read: number, reused = 0): number {
  const { width, layers, mlp_width, vocabulary } = engine.about.config;
  return read * layers * (4 * width * width + 2 * (read + reused) * width + 2 * width * mlp_width) + width * vocabulary;
}

function counted(engine: Engine, run: Run, written: Written): Json {
  const { layers, width } = engine.about.config;
  const perToken = 2 * layers * width * engine.about.element;
  const steps = Array.from({ length: written.readings }, (_, step) => {
    const [read, reused] = step ? [1, run.length + step - 1] : [run.length, 0];
    const id = written.ids[step];
    return {
      step,
      token: id === undefined ? null : (engine.token(id) as Json),
      read,
      reused,
      bytes_written: read * perToken,
      bytes_reused: reused * perToken,
      multiplications: multiplications(engine, read, reused),
      without: multiplications(engine, read + reused),
    };
  });
  const all = (of: 'multiplications' | 'without'): number => steps.reduce((total, step) => total + step[of], 0);
  const held = steps.reduce((most, step) => Math.max(most, step.bytes_written + step.bytes_reused), 0);
  return {
    model: engine.name,
    prompt: run.ids.map((id) => engine.token(id)) as Json,
    text: engine.tokenizer.decode(written.ids),
    per_token_bytes: perToken,
    steps,
    total: { multiplications: all('multiplications'), without: all('without'), bytes: held },
  };
}

export async function cache(engine: Engine, run: Run, most: number, pause: Pause): Promise<Json> {
  return counted(engine, run, await write(engine, run, { temperature: 1, top_k: 1, top_p: 1 }, most, 0, pause));
}
