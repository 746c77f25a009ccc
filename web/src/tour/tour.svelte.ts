/** Where the reader is on the guided tour. The step stands in the address, so that a link and the browser's way back show it. */

import { write } from '../lib/url';
import { moment } from '../state/moment.svelte';
import { remember, remembered } from '../state/preferences.svelte';
import { post } from '../state/server.svelte';
import type { Facts } from './facts';
import { placeOf, steps, type Step } from './steps';

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
  /** What is known about the texts of steps, by model and step. */
  #known = $state.raw<Record<string, Facts>>({});

  /** Whether to offer the tour: once, to someone who came without a link. */
  get offered(): boolean {
    return bare && this.#seen === null && !this.step;
  }
  /** Where the tour begins, or goes on. */
  get entrance(): string {
    return this.address(this.step ?? steps.find((one) => one.name === this.#seen) ?? steps[0]!);
  }
  /** What is known about a step's text on the model being shown; null until it has been asked. */
  facts(step: Step): Facts | null {
    return this.#known[`${moment.model} ${step.name}`] ?? null;
  }
  /** Where a step is on the model being shown, with what was found there. */
  address(step: Step): string {
    return write(placeOf(step, moment.model, this.facts(step)));
  }
  /** Ask what a step claims about its text, and go where the answer points if the step is still as it was set up. */
  async ask(step: Step, signal: AbortSignal): Promise<void> {
    const { model } = moment;
    if (!step.facts || this.facts(step)) return;
    const found = await post<Facts>('facts', { model, text: step.place.text ?? '', facts: step.facts }, signal);
    if (signal.aborted || model !== moment.model) return;
    const untouched = this.step === step && !this.strayed;
    this.#known = { ...this.#known, [`${model} ${step.name}`]: found };
    if (untouched && step.place.from) moment.show(placeOf(step, model, found));
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
