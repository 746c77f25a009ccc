/** A sweep asked for layer by layer, from the last one down, so that its grid fills while it is made. */

import type { Sweep } from '../../lib/views';
import { get, kept, Refused, type Failure, type Query } from '../../state/server.svelte';

export const WHAT = ['residual', 'attention', 'mlp', 'head', 'attention pattern'] as const;
export type What = (typeof WHAT)[number];

/** What is asked: of which run, and how. */
export interface Asked {
  run: string;
  layers: number;
  query: Query;
}

export class Filling {
  /** The answers so far, by layer. */
  rows = $state.raw<Record<number, Sweep>>({});
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
  #control: AbortController | null = null;

  /** Begin anew; what was under way is given up. */
  async fill(asked: Asked): Promise<void> {
    this.stop();
    const control = (this.#control = new AbortController());
    this.rows = {};
    this.failure = null;
    this.busy = true;
    try {
      for (let layer = asked.layers - 1; layer >= 0; layer--) {
        const row = await kept(() => get<Sweep>(`traces/${asked.run}/sweep`, { ...asked.query, layer: [layer] }, control.signal));
        if (control.signal.aborted) return;
        this.rows = { ...this.rows, [layer]: row };
      }
    } catch (error) {
      if (control.signal.aborted) return;
      const what = String(error);
      this.failure = error instanceof Refused ? error.failure : { code: 'bug', what, remedy: '', values: { what } };
    } finally {
      if (this.#control === control) this.busy = false;
    }
  }

  /** Leave it as it is. */
  stop(): void {
    this.#control?.abort();
    this.#control = null;
    this.busy = false;
  }
}

/** By how much a cell moves the metric, and as a share of the difference where there are two texts. */
export const moved = (row: Sweep, at: number): number => row.recovered?.[0]?.[at] ?? row.values[0]![at]! - row.base;

/** The change that a cell stands for, as `cutaway.inspect.change.from_dict` reads it; null where there is none. */
export function changeOf(what: What, how: string, layer: number, unit: number, text: string): Record<string, unknown> | null {
  if (how === 'zero') return what === 'head' ? { kind: 'ablate_head', layer, head: unit } : null;
  const name = what === 'residual' ? (layer ? `blocks.${layer - 1}.residual` : 'residual.0') : what === 'head' ? `blocks.${layer}.attention.heads` : what === 'attention pattern' ? `blocks.${layer}.attention.weights` : `blocks.${layer}.${what}.output`;
  return { kind: 'patch', name, text, ...(what === 'head' || what === 'attention pattern' ? { head: unit } : { position: unit }) };
}
