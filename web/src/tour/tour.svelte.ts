/** Where the reader is on the guided tour. The step stands in the address, so that a link and the browser's way back show it. */

import { write } from '../lib/url';
import { moment, type Trace } from '../state/moment.svelte';
import { remember, remembered } from '../state/preferences.svelte';
import { get } from '../state/server.svelte';
import { placeOf, steps, type Head, type Step } from './steps';

/** Asked for nothing in particular: the address was bare when the explorer opened. */
const bare = location.hash.length < 3;
const OVER = 'over';

class Tour {
  /** What this browser remembers: the last step seen, or that the tour is over. */
  #seen = $state(remembered('tour'));
  step = $derived<Step | null>(steps.find((one) => one.name === moment.tour) ?? null);
  at = $derived(this.step ? steps.indexOf(this.step) : -1);
  /** The reader has left what the step set up: it can be shown again. */
  strayed = $derived(this.step !== null && write(moment.place()) !== this.address(this.step));
  /** The heads that steps look for, once they are known. */
  #found = $state<Record<string, Head>>({});

  /** Whether to offer the tour: once, to someone who came without a link. */
  get offered(): boolean {
    return bare && this.#seen === null && !this.step;
  }
  /** Where the tour begins, or goes on. */
  get entrance(): string {
    return this.address(this.step ?? steps.find((one) => one.name === this.#seen) ?? steps[0]!);
  }
  /** Where a step is, with the head it looks for. */
  address(step: Step): string {
    return write(placeOf(step, this.#found[JSON.stringify([step.place.text, step.place.find])] ?? null));
  }
  /** Find the head a step looks for in the text carried through, and go to it if the step is still as it was set up. */
  async find(step: Step, trace: Trace, signal: AbortSignal): Promise<void> {
    const key = JSON.stringify([step.place.text, step.place.find]);
    const { find, text } = step.place;
    if (!find || this.#found[key] || trace.text !== text || trace.model !== 'builtin') return;
    const last = (word: string, before: number): number => trace.tokens.findLastIndex((token, i) => i < before && token.text === word);
    const position = last(find.from, trace.tokens.length);
    const looked = last(find.to, position);
    if (looked < 0) return;
    const { layer, head } = await get<Head>(`traces/${trace.id}/looking`, { position, key: looked }, signal);
    if (signal.aborted) return;
    const untouched = !this.strayed;
    this.#found[key] = { layer, head };
    if (!untouched) return;
    Object.assign(moment, { layer, head });
    for (const [name, value] of Object.entries(placeOf(step, { layer, head }).settings)) moment.set(name, value, '', step.page);
  }
  neighbour(by: 1 | -1): Step | null {
    return this.at < 0 ? null : (steps[this.at + by] ?? null);
  }

  go(by: 1 | -1): void {
    const to = this.neighbour(by);
    if (to) location.hash = this.address(to);
  }
  /** Stay on the page, without the tour; it goes on from here another time. */
  leave(): void {
    this.#keep(this.neighbour(1) && this.step ? this.step.name : OVER);
    moment.tour = '';
  }
  decline(): void {
    this.#keep(OVER);
  }
  /** A step was shown. */
  saw(step: Step): void {
    this.#keep(step.name);
  }
  #keep(seen: string): void {
    if (this.#seen === seen) return;
    this.#seen = seen;
    remember('tour', seen);
  }
}

export const tour = new Tour();
