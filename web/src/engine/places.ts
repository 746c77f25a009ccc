/** The map of GPT-2: every named intermediate, its axes, and what made it from what (`cutaway.models.gpt2.map`). */

import { Refusal } from './refused';
import type { Config } from './weights';

export interface Place {
  name: string;
  axes: string[];
  operation: string;
  inputs: string[];
  module: string;
  /** Which share of the module's outputs this is, of how many. */
  share: [number, number];
}

const VECTOR = ['token', 'column'];
const HEADS = ['head', 'token', 'column'];
const TABLE = ['head', 'token', 'key'];

export function places(config: Config): Map<string, Place> {
  const found = new Map<string, Place>();
  const add = (name: string, axes: string[], operation: string, inputs: string[], module = '', share: [number, number] = [0, 1]): void => void found.set(name, { name, axes, operation, inputs, module, share });
  add('token_embedding', VECTOR, 'look up', ['ids'], 'token_embedding');
  add('position_embedding', VECTOR, 'look up', ['positions'], 'position_embedding');
  add('residual.0', VECTOR, 'add', ['token_embedding', 'position_embedding']);
  let stream = 'residual.0';
  for (let layer = 0; layer < config.layers; layer++) {
    const block = `blocks.${layer}`;
    const attention = `${block}.attention`;
    add(`${attention}.norm`, VECTOR, 'norm', [stream], `${block}.attention_norm`);
    ['queries', 'keys', 'values'].forEach((made, third) => add(`${attention}.${made}`, HEADS, 'linear', [`${attention}.norm`], `${attention}.queries_keys_values`, [third, 3]));
    add(`${attention}.scores`, TABLE, 'score', [`${attention}.queries`, `${attention}.keys`], attention);
    add(`${attention}.masked`, TABLE, 'mask', [`${attention}.scores`]);
    add(`${attention}.weights`, TABLE, 'softmax', [`${attention}.masked`]);
    add(`${attention}.heads`, HEADS, 'mix', [`${attention}.weights`, `${attention}.values`]);
    add(`${attention}.merged`, VECTOR, 'merge', [`${attention}.heads`]);
    add(`${attention}.output`, VECTOR, 'linear', [`${attention}.merged`], `${attention}.projection`);
    add(`${block}.residual.middle`, VECTOR, 'add', [stream, `${attention}.output`]);
    const mlp = `${block}.mlp`;
    add(`${mlp}.norm`, VECTOR, 'norm', [`${block}.residual.middle`], `${block}.mlp_norm`);
    add(`${mlp}.hidden`, VECTOR, 'linear', [`${mlp}.norm`], `${mlp}.widen`);
    add(`${mlp}.activation`, VECTOR, 'activate', [`${mlp}.hidden`]);
    add(`${mlp}.output`, VECTOR, 'linear', [`${mlp}.activation`], `${mlp}.projection`);
    add(`${block}.residual`, VECTOR, 'add', [`${block}.residual.middle`, `${mlp}.output`]);
    stream = `${block}.residual`;
  }
  add('final_norm', VECTOR, 'norm', [stream], 'final_norm');
  add('logits', VECTOR, 'linear', ['final_norm'], config.tied ? 'token_embedding' : 'output');
  return found;
}

export function placeOf(known: Map<string, Place>, name: string): Place {
  const found = known.get(name);
  if (!found) throw new Refusal('mistake', `Nothing in this model is called '${name}'.`);
  return found;
}

/** How many columns the last axis has. */
export function columns(config: Config, tokens: number, { name, axes }: Place): number {
  if (axes.at(-1) === 'key') return tokens;
  if (axes[0] === 'head') return config.head_width;
  if (name === 'logits') return config.vocabulary;
  return /\.mlp\.(hidden|activation)$/.test(name) ? config.mlp_width : config.width;
}
