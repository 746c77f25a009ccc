/** The neurons of the MLPs: which ones fire, at which tokens, and which next tokens they speak for (`cutaway.inspect.neurons`). */

import type { Engine } from '../engine';
import { linear } from '../model';
import { argmax, likeliest, line, mean, rounded, type Json } from '../numbers';
import { within } from '../refused';
import type { Run } from '../run';

const WRITES = 5;

const over = (run: Run, layer: number, neuron: number): Float32Array => {
  const values = run.get(`blocks.${layer}.mlp.activation`);
  const wide = run.model.config.mlp_width;
  return Float32Array.from({ length: run.length }, (_, at) => values[at * wide + neuron]!);
};

export function neurons(engine: Engine, run: Run, given: number[] | null, top: number, at: number | null): Json {
  const { layers, mlp_width } = engine.about.config;
  const chosen = given ? [...new Set(given.map((one) => run.layer(one)))] : Array.from({ length: layers }, (_, i) => i);
  const position = at === null ? null : run.position(at);
  const active: Json[] = [];
  const candidates: { value: number; layer: number; neuron: number }[] = [];
  for (const layer of chosen) {
    const values = run.get(`blocks.${layer}.mlp.activation`);
    active.push(Array.from({ length: run.length }, (_, token) => rounded(values.subarray(token * mlp_width, (token + 1) * mlp_width).reduce((count, one) => count + (one > 0 ? 1 : 0), 0) / mlp_width)));
    const strength = position === null ? new Float32Array(mlp_width).fill(-Infinity) : values.subarray(position * mlp_width, (position + 1) * mlp_width);
    if (position === null) for (let i = 0; i < values.length; i++) strength[i % mlp_width] = Math.max(strength[i % mlp_width]!, values[i]!);
    for (const neuron of likeliest(strength, Math.min(top, mlp_width))) candidates.push({ value: strength[neuron]!, layer, neuron });
  }
  const strongest = candidates.sort((a, b) => b.value - a.value || a.layer - b.layer || a.neuron - b.neuron).slice(0, top);
  return { position, layers: chosen, active, neurons: strongest.map(({ layer, neuron }) => describe(engine, run, layer, neuron)) };
}

export function neuron(engine: Engine, run: Run, layer: number, number: number): Json {
  return describe(engine, run, run.layer(layer), within('neuron', number, engine.about.config.mlp_width));
}

function describe(engine: Engine, run: Run, layer: number, number: number): Json {
  const { width, mlp_width } = engine.about.config;
  const projection = engine.model.weights.get(`blocks.${layer}.mlp.projection.weight`); // [width, neuron]
  const gain = engine.model.weights.get('final_norm.weight');
  const added = Float32Array.from({ length: width }, (_, i) => projection[i * mlp_width + number]!);
  const middle = mean(added);
  const direction = added.map((one, i) => (one - middle) * gain[i]!);
  const size = engine.tokenizer.size;
  const raised = new Float32Array(size);
  linear(direction, engine.model.output, null, raised, 0, 1, width, size);
  const activations = over(run, layer, number);
  const at = argmax(activations);
  return {
    layer,
    neuron: number,
    activations: line(activations),
    at,
    writes: likeliest(raised, Math.min(WRITES, size)).map((id) => [engine.token(id) as Json, rounded(raised[id]!)]),
    peak: rounded(activations[at]!),
  };
}
