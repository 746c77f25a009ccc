/** What the picture of the whole machine is drawn from (`cutaway.inspect.machine`). */

import type { Engine } from '../engine';
import { argmax, length, line, softmax, type Json } from '../numbers';
import { Refusal } from '../refused';
import type { Run } from '../run';

export interface Numbered {
  numbers: Float32Array;
  shape: number[];
}

function window(run: Run, first: number, count: number): [number, number] {
  return [Math.min(first, run.length), Math.min(first + count, run.length)];
}

/** One token's vector; heads follow each other. */
function vector(run: Run, name: string, at: number): Float32Array {
  const place = run.known.get(name);
  if (!place) throw new Refusal('mistake', `Nothing in this model is called '${name}'.`);
  if (place.axes.at(-1) !== 'column') throw new Refusal('mistake', `${name} has no vector for a token: it is a table.`);
  if (place.axes[0] !== 'head') return run.row(name, at);
  const { heads, head_width, width } = run.model.config;
  const found = new Float32Array(width);
  for (let head = 0; head < heads; head++) found.set(run.headRow(name, head, at), head * head_width);
  return found;
}

/** For each name and token the length of its vector, then the vector in so many cells: of the numbers that share one the largest. */
export function folded(run: Run, names: string[], first: number, count: number, cells: number): Numbered {
  const [start, end] = window(run, first, count);
  const numbers = new Float32Array(names.length * (end - start) * (1 + cells));
  let at = 0;
  for (const name of names) {
    for (let token = start; token < end; token++, at += 1 + cells) {
      const found = vector(run, name, token);
      numbers[at] = length(found);
      if (found.length <= cells) numbers.set(found, at + 1);
      else {
        for (let cell = 0; cell < cells; cell++) {
          let most = 0;
          const to = Math.floor(((cell + 1) * found.length) / cells);
          for (let i = Math.floor((cell * found.length) / cells); i < to; i++) if (Math.abs(found[i]!) > Math.abs(most)) most = found[i]!;
          numbers[at + 1 + cell] = most;
        }
      }
    }
  }
  return { numbers, shape: [names.length * (end - start), 1 + cells] };
}

/** What each token attends to most, over all heads: the positions, the strongest first, then their weights. */
export function looks(run: Run, names: string[], k: number): Numbered {
  const { heads } = run.model.config;
  const numbers = new Float32Array(names.length * run.length * 2 * k);
  const mean = new Float32Array(run.length);
  let at = 0;
  for (const name of names) {
    tableCheck(run, name);
    for (let token = 0; token < run.length; token++, at += 2 * k) {
      mean.fill(0);
      for (let head = 0; head < heads; head++) {
        const row = run.headRow(name, head, token);
        for (let key = 0; key <= token; key++) mean[key]! += row[key]! / heads;
      }
      for (let n = 0; n < k; n++) {
        const best = argmax(mean);
        const weight = mean[best]!;
        numbers[at + n] = weight > 0 ? best : -1;
        numbers[at + k + n] = weight;
        mean[best] = 0;
      }
    }
  }
  return { numbers, shape: [names.length * run.length, 2 * k] };
}

/** One token's row of each table, head by head, over the keys of the window. */
export function rowsOf(run: Run, names: string[], position: number, first: number, count: number): Numbered {
  const [start, end] = window(run, first, count);
  const { heads } = run.model.config;
  const numbers = new Float32Array(names.length * heads * (end - start));
  names.forEach((name, n) => {
    tableCheck(run, name);
    for (let head = 0; head < heads; head++) numbers.set(run.headRow(name, head, run.position(position)).subarray(start, end), (n * heads + head) * (end - start));
  });
  return { numbers, shape: [names.length * heads, end - start] };
}

function tableCheck(run: Run, name: string): void {
  if (run.known.get(name)?.axes.at(-1) !== 'key') throw new Refusal('mistake', `${name} is no table of tokens and the tokens they attend to.`);
}

/** The likeliest token after each of the window's, and its probability. */
export function expected(engine: Engine, run: Run, first: number, count: number): Json {
  const [start, end] = window(run, first, count);
  const found = Array.from({ length: end - start }, (_, i) => {
    const shares = softmax(run.logits(start + i));
    const best = argmax(shares.subarray(0, engine.tokenizer.size));
    return { word: engine.token(best), share: shares[best]! };
  });
  return { words: found.map((one) => one.word) as Json, shares: line(found.map((one) => one.share)) };
}
