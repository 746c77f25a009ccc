/** Which tokens caused this one: gradients on the token embeddings, tokens left out, or attention (`cutaway.inspect.saliency`). */

import { toEmbeddings } from '../backward';
import type { Engine } from '../engine';
import { dot, length, line, mean, rounded, softmax, sum, type Json } from '../numbers';
import { Refusal } from '../refused';
import { Run } from '../run';
import type { Pause } from './sweep';

type Method = 'gradient' | 'integrated' | 'occlusion' | 'rollout' | 'values';

interface Target {
  position: number;
  id: number;
  against: number | null;
}

/** The direction in which the target's number grows, at the final norm. */
function direction(engine: Engine, { id, against }: Target): Float32Array {
  const { width } = engine.about.config;
  const row = (one: number): Float32Array => engine.model.output.subarray(one * width, (one + 1) * width);
  if (against === null) return row(id);
  const other = row(against);
  return row(id).map((one, i) => one - other[i]!);
}

export async function saliency(engine: Engine, run: Run, target: number, method: string, steps: number, against: number | null, pause: Pause): Promise<Json> {
  if (!(target >= 1 && target <= run.length)) throw new Refusal('mistake', `No cause can be found for token ${target}: choose one from 1 (the first has nothing before it) to ${run.length} (the one that would come next).`);
  const id = run.next(target - 1, engine.tokenizer.size);
  const goal: Target = { position: target, id, against };
  if (against !== null && method === 'rollout') throw new Refusal('mistake', 'Attention rollout knows of no target: it cannot tell one token from another.');
  if (against === id) throw new Refusal('mistake', `Token ${target} is '${engine.token(id).text}' itself: there is no difference to explain.`);
  const { width } = engine.about.config;
  let norms: Float64Array;
  let signed: Float64Array;
  let gap: number | null = null;
  if (method === 'gradient' || method === 'integrated') {
    const found = method === 'gradient' ? { parts: gradient(engine, run, goal), gap: null } : await integrated(engine, run, goal, steps, pause);
    gap = found.gap;
    const ofToken = (at: number): Float64Array => found.parts.subarray(at * width, (at + 1) * width);
    norms = Float64Array.from(run.ids, (_, at) => length(ofToken(at)));
    signed = Float64Array.from(run.ids, (_, at) => sum(ofToken(at)));
  } else {
    const found = await BY_TOKEN[method as 'occlusion' | 'rollout' | 'values']?.(engine, run, goal, pause);
    if (!found) throw new Refusal('mistake', `There is no method '${method}'.`);
    [signed, gap] = [found.parts, found.gap];
    norms = signed.map(Math.abs);
  }
  const total = sum(norms);
  const logits = run.logits(target - 1);
  return {
    method: method as Method,
    targets: [{ position: target, token: engine.token(id) as Json, probability: rounded(softmax(logits)[id]!), against: against === null ? null : (engine.token(against) as Json) }],
    span: false,
    share: [line(norms.map((one) => one / Math.max(1e-30, total)))],
    signed: [line(signed)],
    norm: line([total]),
    number: line([logits[id]! - (against === null ? 0 : logits[against]!)]),
    total: line([sum(signed)]),
    gap: gap === null ? null : line([gap]),
  };
}

/** The gradient of the target's logit at the token embeddings, times these. [token, width] */
function gradient(engine: Engine, run: Run, goal: Target): Float64Array {
  const found = toEmbeddings(run, goal.position - 1, direction(engine, goal));
  return run.get('token_embedding').reduce((parts, one, i) => ((parts[i]! *= one), parts), found);
}

/** The run in which the token embeddings are these. */
const withEmbeddings = (engine: Engine, run: Run, change: (value: Float32Array) => void): Run => new Run(engine.model, run.ids, new Map([['token_embedding', [change]]]));

const numberOf = (engine: Engine, run: Run, goal: Target): number => dot(run.row('final_norm', goal.position - 1), direction(engine, goal));

async function integrated(engine: Engine, run: Run, goal: Target, steps: number, pause: Pause): Promise<{ parts: Float64Array; gap: number }> {
  const embeddings = run.get('token_embedding');
  const parts = new Float64Array(embeddings.length);
  for (const { at, size } of gauss(steps)) {
    await pause();
    const part = withEmbeddings(engine, run, (value) => value.forEach((one, i) => (value[i] = one * at)));
    toEmbeddings(part, goal.position - 1, direction(engine, goal)).forEach((one, i) => (parts[i]! += size * one));
  }
  parts.forEach((one, i) => (parts[i] = one * embeddings[i]!));
  const none = withEmbeddings(engine, run, (value) => value.fill(0));
  return { parts, gap: sum(parts) - (numberOf(engine, run, goal) - numberOf(engine, none, goal)) };
}

/** Gauss-Legendre points between 0 and 1, and how much each counts. */
function gauss(count: number): { at: number; size: number }[] {
  return Array.from({ length: count }, (_, i) => {
    let x = -Math.cos((Math.PI * (i + 0.75)) / (count + 0.5));
    let slope = 0;
    for (let round = 0; round < 100; round++) {
      let [last, now] = [1, x];
      for (let n = 2; n <= count; n++) [last, now] = [now, ((2 * n - 1) * x * now - (n - 1) * last) / n];
      slope = (count * (x * now - last)) / (x * x - 1);
      const step = now / slope;
      x -= step;
      if (Math.abs(step) < 1e-16) break;
    }
    return { at: (x + 1) / 2, size: 1 / ((1 - x * x) * slope * slope) };
  });
}

type ByToken = (engine: Engine, run: Run, goal: Target, pause: Pause) => Promise<{ parts: Float64Array; gap: number | null }>;

const occlusion: ByToken = async (engine, run, goal, pause) => {
  const { width } = engine.about.config;
  const whole = numberOf(engine, run, goal);
  const without = (change: (value: Float32Array) => void): number => whole - numberOf(engine, withEmbeddings(engine, run, change), goal);
  const parts = new Float64Array(run.length);
  for (let at = 0; at < goal.position; at++) {
    await pause();
    parts[at] = without((value) => value.fill(0, at * width, (at + 1) * width));
  }
  return { parts, gap: sum(parts) - without((value) => value.fill(0)) };
};

/** Attention followed through the layers (Abnar and Zuidema, 2020): half of the mean over the heads, half the token itself. */
const rollout: ByToken = async (engine, run, goal) => {
  const tokens = run.length;
  const { layers, heads } = engine.about.config;
  let reached: Float64Array = new Float64Array(tokens);
  reached[goal.position - 1] = 1;
  for (let layer = layers - 1; layer >= 0; layer--) {
    const next: Float64Array = reached.map((one) => one / 2);
    for (let head = 0; head < heads; head++) {
      for (let query = 0; query < tokens; query++) {
        if (!reached[query]) continue;
        const row = run.headRow(`blocks.${layer}.attention.weights`, head, query);
        for (let key = 0; key <= query; key++) next[key]! += (reached[query]! * row[key]!) / heads / 2;
      }
    }
    reached = next;
  }
  return { parts: reached, gap: null };
};

/** What each token's values, weighted by attention, add to the number directly; the final norm's scale is held. */
const byValues: ByToken = async (engine, run, goal) => {
  const { width, layers, heads, head_width, norm_epsilon } = engine.about.config;
  const at = goal.position - 1;
  const last = run.row(`blocks.${layers - 1}.residual`, at, width);
  const middle = mean(last);
  const spread = Math.sqrt(last.reduce((total, one) => total + (one - middle) ** 2, 0) / width + norm_epsilon);
  const gain = engine.model.weights.get('final_norm.weight');
  const way = Float64Array.from(direction(engine, goal), (one, i) => one * gain[i]!);
  const centre = mean(way);
  way.forEach((one, i) => (way[i] = (one - centre) / spread));
  const parts = new Float64Array(run.length);
  let whole = 0;
  for (let layer = 0; layer < layers; layer++) {
    const name = `blocks.${layer}.attention`;
    const matrix = engine.model.weights.get(`${name}.projection.weight`); // [output, column of the merged heads]
    const column = new Float64Array(width);
    for (let o = 0; o < width; o++) for (let i = 0; i < width; i++) column[i]! += way[o]! * matrix[o * width + i]!;
    for (let head = 0; head < heads; head++) {
      const mine = column.subarray(head * head_width, (head + 1) * head_width);
      const weights = run.headRow(`${name}.weights`, head, at);
      for (let key = 0; key <= at; key++) parts[key]! += weights[key]! * dot(run.headRow(`${name}.values`, head, key), mine);
      whole += dot(run.headRow(`${name}.heads`, head, at), mine);
    }
  }
  return { parts, gap: sum(parts) - whole };
};

const BY_TOKEN = { occlusion, rollout, values: byValues };
