/** The model that learns: begun, taken on step by step, gone back in. It lives as long as this browser page listens. */

import { spell, type Token } from '../../lib/token';
import { Refused, get, getTable, post, type Failure } from '../../state/server.svelte';
import { remembered } from '../../state/preferences.svelte';
import type { Table } from '../../lib/binary';

export interface Matrix {
  name: string;
  shape: [number, number];
}

/** What POST /api/learning says first. */
export interface About {
  key: string;
  tokens: Token[];
  shape: { layers: number; heads: number; width: number; vocabulary: number; context: number };
  parameters: number;
  steps: number;
  length: number;
  rows: number;
  memory: number;
  matrices: Matrix[];
}

export interface Point {
  step: number;
  loss: number;
  rate: number;
  norm: number;
}

export interface Candidate {
  token: Token;
  predicted: number;
  wanted: number;
  error: number;
  after: number;
  random: number;
}

export interface Shown {
  step: number;
  done: number;
  starts: number[];
  losses: number[];
  wanted: Token;
  loss: number;
  rows: Candidate[];
}

export interface Cell {
  random: number;
  before: number;
  gradient: number;
  rate: number;
  update: number;
  after: number;
}

/** What is shown one after the other while it goes slowly. */
export const STAGES = ['window', 'predict', 'error', 'update'] as const;
export const SPEEDS = ['slow', 'story', 'fast'] as const;
export type Speed = (typeof SPEEDS)[number];

/** Milliseconds for a step: the first are told stage by stage, the last run by; all of them take about a minute. */
export function pace(step: number, speed: Speed): number {
  if (speed === 'slow') return 3200;
  if (speed === 'fast') return 0;
  return step < 3 ? 3200 : step < 10 ? 900 : step < 30 ? 350 : 95;
}
const FAST = 12; // steps between two pictures, at most
const TOLD = 900; // a step that takes as long is told stage by stage

/** Which page this is: a page has one training at a time, also after it was loaded anew. */
function page(): string {
  try {
    return (sessionStorage['cutaway.page'] ??= crypto.getRandomValues(new Uint32Array(3)).join('-'));
  } catch {
    return remembered('page') ?? String(Math.random());
  }
}

class Pupil {
  about = $state.raw<About | null>(null);
  shown = $state.raw<Shown | null>(null);
  curve = $state.raw<Point[]>([]);
  failure = $state.raw<Failure | null>(null);
  /** It is being made: a process of its own starts. */
  beginning = $state(false);
  playing = $state(false);
  /** The stage being told; null where all are shown at once. */
  stage = $state<number | null>(null);
  row = $state(0);
  position = $state(0);
  /** What it learns. */
  text = $state('');
  seed = $state(0);
  #life: AbortController | null = null;
  #turn = 0;

  get step(): number {
    return this.shown?.step ?? 0;
  }
  get done(): number {
    return this.curve.length;
  }
  get ended(): boolean {
    return !!this.about && this.step >= this.about.steps;
  }

  /** Make a random model for this text, and look at it; `step` is where to go on to. */
  async begin(text: string, seed = 0, step = 0): Promise<void> {
    this.leave();
    Object.assign(this, { text, seed, beginning: true, failure: null, about: null, shown: null, curve: [], row: 0 });
    const life = (this.#life = new AbortController());
    try {
      const about = await this.#live(text, seed, life);
      if (this.#life !== life) return;
      this.about = { ...about, tokens: spell(about.tokens) };
      this.position = Math.min(this.position || 6, about.length - 1);
      await this.go(step);
    } catch (error) {
      if (this.#life === life) this.#fail(error);
    } finally {
      if (this.#life === life) this.beginning = false;
    }
  }

  /** The training's life is this answer: its first line says what it is, and it ends when nobody listens. */
  async #live(text: string, seed: number, life: AbortController): Promise<About> {
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ page: page(), text, seed }), signal: life.signal };
    const response = await fetch('api/learning', init);
    if (!response.ok) throw new Refused(((await response.json()) as { error: Failure }).error);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let said = '';
    while (!said.includes('\n')) {
      const { value, done } = await reader.read();
      if (done) throw new Refused(ENDED);
      said += value;
    }
    const listen = async (): Promise<void> => {
      while (!(await reader.read()).done);
    };
    void listen().catch(() => undefined).then(() => this.#life === life && ((this.#life = null), this.pause()));
    return JSON.parse(said) as About;
  }

  /** Show this step, training as far as it; an older answer never replaces a newer one. */
  async go(step: number): Promise<void> {
    const { about } = this;
    if (!about) return;
    const mine = ++this.#turn;
    const wanted = Math.max(0, Math.min(about.steps, step));
    try {
      for (;;) {
        const asked = { step: wanted, row: this.row, position: this.position, known: this.curve.length };
        const { curve, ...shown } = await post<Shown & { curve: Point[] }>(`learning/${about.key}/show`, asked, this.#life?.signal);
        if (this.about?.key !== about.key) return;
        this.curve = [...this.curve, ...curve.filter((one) => one.step > this.curve.length)];
        if (mine !== this.#turn) return;
        this.shown = shown;
        this.failure = null;
        if (shown.step >= wanted) return;
      }
    } catch (error) {
      if (mine === this.#turn && this.about?.key === about.key) this.#fail(error);
    }
  }

  look(row: number, position: number): void {
    this.row = row;
    this.position = position;
    void this.go(this.step);
  }

  async play(speed: () => Speed, still: boolean): Promise<void> {
    if (!this.about || this.playing) return;
    if (this.ended) await this.go(0);
    this.playing = true;
    let stride = 1;
    while (this.playing && !this.ended && !this.failure) {
      const wait = pace(this.step, speed());
      const begun = performance.now();
      await this.go(this.step + (wait ? stride : FAST));
      // Where a picture takes longer than its step may, the next is of a later step: a minute stays a minute.
      stride = wait < TOLD && wait ? Math.max(1, Math.min(FAST, Math.round((performance.now() - begun) / wait))) : 1;
      if (wait >= TOLD && !still) {
        for (let stage = 0; stage < STAGES.length && this.playing; stage++) {
          this.stage = stage;
          await rest(wait / STAGES.length);
        }
        this.stage = null;
      } else await rest(Math.max(0, wait - (performance.now() - begun)));
    }
    this.pause();
  }

  pause(): void {
    this.playing = false;
    this.stage = null;
  }

  /** Train no more: the process ends with its answer. */
  leave(): void {
    this.pause();
    this.#turn++;
    this.#life?.abort();
    this.#life = null;
    this.about = this.shown = null;
  }

  sample(step: number, signal?: AbortSignal): Promise<Token[]> {
    return get<Token[]>(`learning/${this.about!.key}/sample`, { step }, signal).then(spell);
  }
  matrix(name: string, step: number, kind: string, signal?: AbortSignal): Promise<Table> {
    return getTable(`learning/${this.about!.key}/matrix`, { name, step, kind }, signal);
  }
  cell(name: string, step: number, row: number, column: number, signal?: AbortSignal): Promise<Cell> {
    return get<Cell>(`learning/${this.about!.key}/cell`, { name, step, row, column }, signal);
  }
  /** Put both ends among the explorer's models; their names. */
  open(step: number): Promise<string[]> {
    return post<string[]>(`learning/${this.about!.key}/open`, { step });
  }

  #fail(error: unknown): void {
    this.pause();
    const what = String(error);
    this.failure = error instanceof Refused ? error.failure : error instanceof DOMException ? ENDED : { code: 'bug', what, remedy: '', values: { what } };
  }
}

const ENDED: Failure = { code: 'learn_ended', what: '', remedy: '', values: {} };
const rest = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

export const pupil = new Pupil();
