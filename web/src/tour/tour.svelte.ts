/** Where the reader is on the guided tour. The step stands in the address, so that a link and the browser's way back show it. */

import { site } from '../lib/site';
import { write, type Place } from '../lib/url';
import { moment, USUAL } from '../state/moment.svelte';
import { models } from '../state/models.svelte';
import { remember, remembered } from '../state/preferences.svelte';
import { post, type Failure } from '../state/server.svelte';
import { holds, spoken, valueOf, type Facts } from './facts';
import { owned, placeOf, steps, stepsOf, type Given, type Step } from './steps';

/** Asked for nothing in particular: the address was bare when the explorer opened. */
const bare = location.hash.length < 3;
/** A link to a step that says nothing else: the step sets itself up. */
const unset = /[?&]tour=/.test(location.hash) && !/[?&]text=/.test(location.hash);
const OVER = 'over';

/** What a step shows, one after the other, when it is presented. */
export type Beat = 'words' | 'ask' | 'here' | 'try';

class Tour {
  /** What this browser remembers: the last step seen, or that the tour is over. */
  #seen = $state(remembered('tour'));
  /** The tour that the explorer was given, and what is wrong with its file. */
  given = $state.raw<Given | null>(null);
  failure = $state.raw<Failure | null>(null);
  /** Whether a presentation can have a remote control. */
  remote = $state(false);
  #written = $derived(this.given ? stepsOf(this.given) : []);
  /** The tour that the address is on; without one, that which was given, or else the built-in one. */
  steps = $derived.by(() => {
    const has = (list: Step[]): boolean => list.some((one) => one.name === moment.tour);
    const list = has(this.#written) || (this.#written.length && !has(steps)) ? this.#written : steps;
    const there = models.list.length ? list.filter(({ place }) => !place.model || models.list.some((one) => one.name === place.model)) : list;
    return moment.own ? there.filter((one) => one.own !== false).map(owned) : there;
  });
  step = $derived<Step | null>(this.steps.find((one) => one.name === moment.tour) ?? null);
  at = $derived(this.step ? this.steps.indexOf(this.step) : -1);
  /** The reader has left what the step set up: it can be shown again. */
  strayed = $derived(this.step !== null && write(moment.place()) !== this.address(this.step));
  /** What is known about the texts of steps, by model, step and text. */
  #known = $state.raw<Record<string, Facts>>({});
  /** What the reader guessed, by model, step and text; '' has seen the answer without. */
  #guesses = $state.raw<Record<string, string>>({});
  /** The model that the tour is on; steps that are about another one lead back to it. */
  #home = '';
  /** Which part of the step is on the wall. */
  beat = $state(0);

  /** Whether to offer the tour: once, to someone who came without a link. */
  get offered(): boolean {
    return bare && this.#seen === null && !this.step;
  }
  /** Where the tour begins, or goes on. */
  get entrance(): string {
    return this.address(this.step ?? this.steps.find((one) => one.name === this.#seen) ?? this.steps[0]!);
  }
  #model(step: Step): string {
    const brought = this.steps.some((one) => one.place.model === moment.model);
    if (!brought || !this.#home) this.#home = brought ? USUAL.model : moment.model;
    return step.place.model ?? this.#home;
  }
  #key(step: Step): string {
    return JSON.stringify([this.#model(step), step.name, this.#text(step)]);
  }
  #text(step: Step): string {
    return moment.own ? moment.text : (step.place.text ?? '');
  }
  /** What is known about a step's text on the model being shown; null until it has been asked. */
  facts(step: Step): Facts | null {
    return this.#known[this.#key(step)] ?? null;
  }
  #place(step: Step): Place {
    const { own, present } = moment;
    return { ...placeOf(step, this.#model(step), this.facts(step), this.#text(step)), own, present };
  }
  /** Where a step is on the model being shown, with what was found there. */
  address(step: Step): string {
    return write(this.#place(step));
  }
  /** Ask for the tour that the explorer was given; a link to one of its steps then finds it. */
  async open(): Promise<void> {
    const answer = site ? null : await fetch('api/tour').catch(() => null); // without a server that knows of tours, the built-in one
    const said = answer?.headers.get('content-type')?.includes('json') ? ((await answer.json()) as { tour: Given | null; remote: boolean; error?: Failure }) : null;
    this.failure = said?.error ?? null;
    this.given = said?.tour ?? null;
    this.remote = said?.remote ?? false;
    if (unset && this.step) moment.show(this.#place(this.step));
  }
  /** Ask what a step claims about its text, and go where the answer points if the step is still as it was set up. */
  async ask(step: Step, signal: AbortSignal): Promise<void> {
    const { own } = moment;
    const [model, key, text] = [this.#model(step), this.#key(step), this.#text(step)];
    if (!step.facts || this.facts(step)) return;
    const found = await post<Facts>('facts', { model, text, facts: step.facts, own }, signal);
    if (signal.aborted || model !== moment.model) return;
    const untouched = this.step === step && !this.strayed;
    this.#known = { ...this.#known, [key]: found };
    if (untouched && step.place.from) moment.show(this.#place(step));
  }
  neighbour(by: 1 | -1): Step | null {
    return this.at < 0 ? null : (this.steps[this.at + by] ?? null);
  }

  /** What was guessed at a step; null: nothing yet, so that its picture is still hidden. */
  guess(step: Step): string | null {
    return this.#guesses[this.#key(step)] ?? null;
  }
  make(step: Step, guess: string): void {
    this.#guesses = { ...this.#guesses, [this.#key(step)]: guess };
    const here = this.beats(step).indexOf('here');
    if (here >= 0) this.beat = here;
  }
  /** Whether the page is hidden until something has been guessed. */
  get veiled(): boolean {
    return !!this.step?.ask && this.guess(this.step) === null && moment.page === this.step.page;
  }
  /** The right answer of a step's question, in words, or the number of the option; null until it is known. */
  answer(step: Step): string | null {
    const { ask } = step;
    const facts = this.facts(step);
    if (ask?.right) return String(ask.right);
    if (!ask || !facts) return null;
    if (ask.answer) return spoken(valueOf(facts, ask.answer)) || null;
    const options = ask.options ?? [];
    const held = options.findIndex((one) => one.if && holds(one, facts));
    const at = held < 0 ? options.findIndex((one) => !one.if) : held;
    return at < 0 ? null : String(at + 1);
  }

  beats(step: Step): Beat[] {
    return ['words', ...(step.ask ? (['ask'] as const) : []), ...(step.here || step.ask ? (['here'] as const) : []), ...(step.try ? (['try'] as const) : [])];
  }
  go(by: 1 | -1): void {
    const to = this.neighbour(by);
    if (to) location.hash = this.address(to);
  }
  /** Presenting: the next thing, or the one before; behind the last of a step comes the next step. */
  turn(by: 1 | -1): void {
    if (!this.step) return;
    const all = this.beats(this.step);
    if (by === 1 && all[this.beat] === 'ask' && this.veiled) this.make(this.step, '');
    else if (this.beat + by >= 0 && this.beat + by < all.length) this.beat += by;
    else this.go(by);
  }
  /** Take the tour on the text being shown, or on its own texts again. */
  own(on: boolean): void {
    moment.own = on;
    if (!on && this.step) moment.show(this.#place(this.step));
  }
  present(on: boolean): void {
    this.beat = 0;
    moment.present = on;
  }
  /** Stay on the page, without the tour; it goes on from here another time. */
  leave(): void {
    this.#keep(this.neighbour(1) && this.step ? this.step.name : OVER);
    moment.tour = '';
    moment.own = false;
  }
  decline(): void {
    this.#keep(OVER);
  }
  /** A step was shown. */
  saw(step: Step): void {
    this.beat = 0;
    this.#keep(step.name);
  }
  #keep(seen: string): void {
    if (this.#seen === seen) return;
    this.#seen = seen;
    remember('tour', seen);
  }
}

export const tour = new Tour();
