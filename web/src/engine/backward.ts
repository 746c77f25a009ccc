/** Gradients down the stack, block by block, from what a run has kept on its way up: the chain rule, written out. */

import { SLOPES } from './model';
import type { Run } from './run';

/**
 * The gradient of one number at the token embeddings [token, width]: `direction` is its gradient at the final norm of the
 * token at `position`.
 */
export function toEmbeddings(run: Run, position: number, direction: Float32Array): Float64Array {
  const { config, weights } = run.model;
  const { width, layers } = config;
  const tokens = position + 1; // what comes later has no part in it
  const gradients = new Float64Array(run.length * width);
  throughNorm(run.row(`blocks.${layers - 1}.residual`, position, width), weights.get('final_norm.weight'), direction, gradients.subarray(position * width, (position + 1) * width), config.norm_epsilon);
  for (let layer = layers - 1; layer >= 0; layer--) {
    const first = layer === layers - 1 ? position : 0; // in the last block only the token itself counts
    throughMlp(run, layer, gradients, first, tokens);
    throughAttention(run, layer, gradients, first, tokens);
  }
  return gradients;
}

/** Adds to `into` what a gradient at a norm's result is at what it was given. */
function throughNorm(x: Float32Array, gain: Float32Array, outer: ArrayLike<number>, into: Float64Array, epsilon: number): void {
  const width = x.length;
  let mean = 0;
  for (let i = 0; i < width; i++) mean += x[i]! / width;
  let variance = 0;
  for (let i = 0; i < width; i++) variance += (x[i]! - mean) ** 2 / width;
  const scale = 1 / Math.sqrt(variance + epsilon);
  let [middle, along] = [0, 0];
  for (let i = 0; i < width; i++) {
    const one = outer[i]! * gain[i]!;
    middle += one / width;
    along += (one * (x[i]! - mean) * scale) / width;
  }
  for (let i = 0; i < width; i++) into[i]! += scale * (outer[i]! * gain[i]! - middle - (x[i]! - mean) * scale * along);
}

/** A gradient at the outputs of a matrix [output, input] -> at its inputs. */
function back(matrix: Float32Array, outer: Float64Array, inputs: number): Float64Array {
  const found = new Float64Array(inputs);
  for (let o = 0; o < outer.length; o++) {
    const one = outer[o]!;
    if (one === 0) continue;
    const row = o * inputs;
    for (let i = 0; i < inputs; i++) found[i]! += one * matrix[row + i]!;
  }
  return found;
}

/** After the MLP -> before its norm, where it was added to the stream. */
function throughMlp(run: Run, layer: number, gradients: Float64Array, first: number, tokens: number): void {
  const { config, weights } = run.model;
  const { width, mlp_width } = config;
  const block = `blocks.${layer}`;
  const slope = SLOPES[config.activation];
  const hidden = run.get(`${block}.mlp.hidden`);
  for (let at = first; at < tokens; at++) {
    const outer = gradients.subarray(at * width, (at + 1) * width);
    const inside = back(weights.get(`${block}.mlp.projection.weight`), outer, mlp_width);
    for (let i = 0; i < mlp_width; i++) inside[i]! *= slope(hidden[at * mlp_width + i]!);
    const normed = back(weights.get(`${block}.mlp.widen.weight`), inside, width);
    throughNorm(run.row(`${block}.residual.middle`, at, width), weights.get(`${block}.mlp_norm.weight`), normed, outer, config.norm_epsilon);
  }
}

/** After attention -> before its norm: from the queries to all they may look at. */
function throughAttention(run: Run, layer: number, gradients: Float64Array, first: number, tokens: number): void {
  const { config, weights } = run.model;
  const { width, heads, head_width, norm_epsilon } = config;
  const name = `blocks.${layer}.attention`;
  const scale = run.model.scale(layer);
  const three = new Float64Array(tokens * 3 * width); // at queries, keys and values, side by side
  for (let query = first; query < tokens; query++) {
    const merged = back(weights.get(`${name}.projection.weight`), gradients.subarray(query * width, (query + 1) * width), width);
    for (let head = 0; head < heads; head++) {
      const outer = merged.subarray(head * head_width, (head + 1) * head_width);
      const shares = run.headRow(`${name}.weights`, head, query);
      const at = (key: number, third: number): number => key * 3 * width + third * width + head * head_width;
      const inner = new Float64Array(query + 1);
      let mean = 0;
      for (let key = 0; key <= query; key++) {
        const values = run.headRow(`${name}.values`, head, key);
        let one = 0;
        const into = at(key, 2);
        for (let i = 0; i < head_width; i++) {
          one += outer[i]! * values[i]!;
          three[into + i]! += shares[key]! * outer[i]!;
        }
        inner[key] = one;
        mean += shares[key]! * one;
      }
      const asked = run.headRow(`${name}.queries`, head, query);
      for (let key = 0; key <= query; key++) {
        const one = shares[key]! * (inner[key]! - mean) * scale;
        const keys = run.headRow(`${name}.keys`, head, key);
        const [toQuery, toKey] = [at(query, 0), at(key, 1)];
        for (let i = 0; i < head_width; i++) {
          three[toQuery + i]! += one * keys[i]!;
          three[toKey + i]! += one * asked[i]!;
        }
      }
    }
  }
  const stream = layer ? `blocks.${layer - 1}.residual` : 'residual.0';
  for (let token = 0; token < tokens; token++) {
    const normed = back(weights.get(`${name}.queries_keys_values.weight`), three.subarray(token * 3 * width, (token + 1) * 3 * width), width);
    throughNorm(run.row(stream, token, width), weights.get(`blocks.${layer}.attention_norm.weight`), normed, gradients.subarray(token * width, (token + 1) * width), norm_epsilon);
  }
}
