/** What a head attends to, and all heads at a glance (`cutaway.inspect.attention`). */

import { HIDDEN, line, mean, rounded, type Json, type Numbers } from '../numbers';
import { Refusal } from '../refused';
import type { Run } from '../run';

const PARTS = ['queries', 'keys', 'values', 'scores', 'masked', 'weights', 'output', 'merged', 'projected'];

export function attention(run: Run, givenLayer: number, givenHead: number, givenPosition: number | null, givenAttended: number | null, parts: string[]): Json {
  const [layer, head] = [run.layer(givenLayer), run.head(givenHead)];
  const position = givenPosition === null ? null : run.position(givenPosition);
  const attended = givenAttended === null ? null : run.position(givenAttended);
  const every = Array.from({ length: run.length }, (_, i) => i);
  const queries = position === null ? every : [position];
  const seen = position === null ? run.length : position + 1;
  const given = attended === null ? every.slice(0, seen) : [attended];
  const name = (part: string): string => `blocks.${layer}.attention.${part}`;
  const vectors = (part: string, at: number[]): Json => at.map((one) => line(run.headRow(name(part), head, one)));
  const table = (part: string): Json => queries.map((one) => line(run.headRow(name(part), head, one).subarray(0, seen)));
  const whole = (part: string): Json => queries.map((one) => line(run.row(name(part), one)));
  const allowed = (): Json => queries.map((one) => Array.from(run.headRow(name('masked'), head, one).subarray(0, seen), (value) => (value <= HIDDEN ? null : rounded(value))));
  const made: Record<string, () => Json> = {
    queries: () => vectors('queries', queries),
    keys: () => vectors('keys', given),
    values: () => vectors('values', given),
    scores: () => table('scores'),
    masked: allowed,
    weights: () => table('weights'),
    output: () => vectors('heads', queries),
    merged: () => whole('merged'),
    projected: () => whole('output'),
  };
  const found: { [name: string]: Json } = { layer, head, position, scale: rounded(run.model.scale(layer)), ...(attended === null ? {} : { attended }) };
  for (const part of parts) {
    if (!PARTS.includes(part)) throw new Refusal('mistake', `Attention has no part '${part}'.`);
    found[part] = made[part]!();
  }
  return found;
}

/** One head's table, or all of an intermediate, as numbers. */
export function headTable(run: Run, name: string, head: number): Float32Array {
  const size = run.length * run.columns(name);
  return run.get(name).subarray(head * size, (head + 1) * size);
}

export function heads(run: Run, given: number[] | null, picture: number): Json {
  const { layers, heads: count } = run.model.config;
  const chosen = given ? [...new Set(given.map((one) => run.layer(one)))] : Array.from({ length: layers }, (_, i) => i);
  const tokens = run.length;
  const same = followSame(run.ids);
  const measures: Record<string, number[][]> = { entropy: [], distance: [], previous: [], first: [], itself: [], induction: [] };
  const pixels: string[][] = [];
  for (const layer of chosen) {
    const rows: Record<string, number[]> = Object.fromEntries(Object.keys(measures).map((of) => [of, []]));
    const drawn: string[] = [];
    for (let head = 0; head < count; head++) {
      const weights = headTable(run, `blocks.${layer}.attention.weights`, head);
      const at = (query: number, key: number): number => weights[query * tokens + key]!;
      let [entropy, distance] = [0, 0];
      for (let query = 0; query < tokens; query++) {
        for (let key = 0; key <= query; key++) {
          const weight = at(query, key);
          if (weight > 0) entropy -= weight * Math.log2(weight);
          distance += weight * (query - key);
        }
      }
      const later = Array.from({ length: tokens - 1 }, (_, i) => i + 1);
      rows.entropy!.push(entropy / tokens);
      rows.distance!.push(distance / tokens);
      rows.previous!.push(mean(later.map((query) => at(query, query - 1))));
      rows.first!.push(mean(later.map((query) => at(query, 0))));
      rows.itself!.push(tokens > 1 ? mean(later.map((query) => at(query, query))) : at(0, 0));
      rows.induction!.push(mean(same.map(([query, key]) => at(query, key))));
      if (picture) drawn.push(draw(weights, tokens, Math.min(picture, tokens)));
    }
    for (const [of, values] of Object.entries(rows)) measures[of]!.push(values);
    pixels.push(drawn);
  }
  const table = (of: string): Json => measures[of]!.map((row) => line(row as Numbers));
  return {
    layers: chosen,
    entropy: table('entropy'),
    distance: table('distance'),
    previous: tokens > 1 ? table('previous') : null,
    first: tokens > 1 ? table('first') : null,
    itself: table('itself'),
    induction: same.length ? table('induction') : null,
    induction_queries: same.length,
    picture: picture ? { size: Math.min(picture, tokens), pixels } : null,
  };
}

/** For each token that stood in the text before: its position, and that of what followed it the last time. */
function followSame(ids: readonly number[]): [number, number][] {
  const last = new Map<number, number>();
  const found: [number, number][] = [];
  ids.forEach((id, position) => {
    const before = last.get(id);
    if (before !== undefined && before + 1 < position) found.push([position, before + 1]);
    last.set(id, position);
  });
  return found;
}

/** A head's weights as a picture: the strongest of each cell, the strongest of a row at 255; bytes in base64. */
function draw(weights: Float32Array, tokens: number, size: number): string {
  const bytes = new Uint8Array(size * size);
  const tops = Array.from({ length: tokens }, (_, query) => weights.subarray(query * tokens, (query + 1) * tokens).reduce((a, b) => Math.max(a, b), 0));
  const edge = (cell: number, up: boolean): number => (up ? Math.ceil(((cell + 1) * tokens) / size) : Math.floor((cell * tokens) / size)); // as adaptive pooling cuts
  for (let r = 0; r < size; r++) {
    for (let c = 0; c < size; c++) {
      let most = 0;
      for (let query = edge(r, false); query < edge(r, true); query++) {
        for (let key = edge(c, false); key < edge(c, true); key++) most = Math.max(most, weights[query * tokens + key]! / tops[query]!);
      }
      bytes[r * size + c] = Math.round(most * 255);
    }
  }
  return btoa(String.fromCharCode(...bytes));
}

/** The head that attends most from one token to another. */
export function looking(run: Run, from: number, to: number): { layer: number; head: number; weight: number } {
  const [position, key] = [run.position(from), run.position(to)];
  let best = { layer: 0, head: 0, weight: -1 };
  for (let layer = 0; layer < run.model.config.layers; layer++) {
    for (let head = 0; head < run.model.config.heads; head++) {
      const weight = run.headRow(`blocks.${layer}.attention.weights`, head, position)[key]!;
      if (weight > best.weight) best = { layer, head, weight };
    }
  }
  return best;
}

/** A piece of any named intermediate. */
export function values(run: Run, name: string, givenPosition: number | null, givenHead: number | null): Json {
  const place = run.known.get(name);
  if (!place) throw new Refusal('mistake', `Nothing in this model is called '${name}'.`);
  const masked = place.operation === 'mask';
  const shown = (row: Numbers): Json => (masked ? Array.from(row, (one) => (one <= HIDDEN ? null : rounded(one))) : line(row));
  const divided = place.axes[0] === 'head';
  if (givenHead !== null && !divided) throw new Refusal('mistake', `${name} is not divided into heads: leave the head out.`);
  const positions = givenPosition === null ? Array.from({ length: run.length }, (_, i) => i) : [run.position(givenPosition)];
  const heads = !divided ? [0] : givenHead === null ? Array.from({ length: run.model.config.heads }, (_, i) => i) : [run.head(givenHead)];
  const rowOf = (head: number, at: number): Numbers => (divided ? run.headRow(name, head, at) : run.row(name, at));
  const table = heads.map((head) => positions.map((at) => rowOf(head, at)));
  const ofHead = table.map((rows) => (givenPosition === null ? rows.map(shown) : shown(rows[0]!)));
  const whole = divided && givenHead === null ? ofHead : ofHead[0]!;
  const axes = [...(divided && givenHead === null ? ['head'] : []), ...(givenPosition === null ? ['token'] : []), place.axes.at(-1)!];
  const columns = run.columns(name);
  const shape = [...(divided && givenHead === null ? [heads.length] : []), ...(givenPosition === null ? [run.length] : []), columns];
  const norm = axes.length === 1 && axes[0] === 'column' ? rounded(Math.sqrt(Array.from(table[0]![0]!).reduce((total, one) => total + one * one, 0))) : null;
  return { name, axes, values: whole as Json, shape, norm };
}

/** The same as numbers in rows: what a table on the page is drawn from. */
export function tableOf(run: Run, name: string, head: number | null): { numbers: Float32Array; shape: number[] } {
  const columns = run.columns(name);
  if (head !== null) return { numbers: headTable(run, name, run.head(head)), shape: [run.length, columns] };
  const divided = run.known.get(name)!.axes[0] === 'head';
  return { numbers: run.get(name), shape: [...(divided ? [run.model.config.heads] : []), run.length, columns] };
}

