/** The piece being looked at: its events, its notes, who wrote which of them; and how a new one comes about. */

import { Refused, get, kept, post, type Failure } from '../../state/server.svelte';
import { models } from '../../state/models.svelte';
import { player } from './sound.svelte';

export interface Note {
  start: number;
  end: number;
  pitch: number;
  velocity: number;
  /** Its first event, where the key goes down; and its last, -1 if there is none. */
  on: number;
  off: number;
}

export interface Group {
  kind: 'on' | 'off' | 'wait' | 'velocity' | 'end';
  first: number;
  end: number;
}

/** What GET /api/piano says. */
export interface About {
  model: string | null;
  /** What the model is recommended to compose with. */
  temperature: number;
  groups: Group[];
  step: number;
  lowest: number;
  highest: number;
  shifts: number;
  velocities: number;
}

interface Sent {
  events: number[];
  times: number[];
  notes: [number, number, number, number, number, number][];
  given?: number;
}

export type Work = '' | 'reading' | 'composing' | 'answering';

export const fault = (error: unknown): Failure => {
  const what = String(error);
  return error instanceof Refused ? error.failure : { code: 'bug', what, remedy: '', values: { what } };
};

class Piece {
  about = $state.raw<About | null>(null);
  shape = $state.raw<{ layers: number; heads: number; context: number } | null>(null);
  events = $state.raw<number[]>([]);
  /** When each event happens, in the model's steps. */
  times = $state.raw<number[]>([]);
  notes = $state.raw<Note[]>([]);
  /** How many of the events were there before the model went on. */
  given = $state(0);
  /** What it is called: a file's name; empty: it was written or played here. */
  name = $state('');
  /** The note whose attention is shown. */
  chosen = $state<number | null>(null);
  work = $state<Work>('');
  failure = $state.raw<Failure | null>(null);
  /** Another number for every piece: what was learned of one says nothing of the next. */
  version = $state(0);
  #work: AbortController | null = null;

  get seconds(): number {
    return this.notes.reduce((last, one) => Math.max(last, one.end), 0);
  }
  get step(): number {
    return this.about?.step ?? 0.01;
  }
  get model(): string {
    return this.about?.model ?? '';
  }

  /** Which event has happened last at a time; -1 before the first. */
  eventAt(seconds: number): number {
    const now = seconds / this.step + 1e-6;
    let [low, high] = [0, this.times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle]! <= now) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
  /** The last note that has begun by then; -1 before the first. */
  noteAt(seconds: number): number {
    let [low, high] = [0, this.notes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.notes[middle]!.start <= seconds + 1e-6) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
  kind(token: number): Group | undefined {
    return this.about?.groups.find((one) => token >= one.first && token < one.end);
  }

  /** Who plays: the model of the moment if it can, or the one that is included; it is woken meanwhile. */
  async open(shown: string, signal: AbortSignal): Promise<void> {
    try {
      const about = await get<About>('piano', { model: shown }, signal);
      const changed = about.model !== this.about?.model;
      this.about = about;
      if (changed) this.clear();
      if (!about.model) return;
      await this.#wake(signal);
    } catch (error) {
      if (!signal.aborted) this.failure = fault(error);
    }
  }
  async #wake(signal: AbortSignal): Promise<void> {
    await models.wake(this.model, signal);
    const map = await get<{ layers: number }>('models/map', { name: this.model }, signal);
    await models.refresh();
    const found = models.list.find((one) => one.name === this.model);
    this.shape = { layers: map.layers, heads: found?.heads ?? 1, context: found?.context ?? 1024 };
  }
  /** Ask the model; one that has fallen asleep is woken first. */
  ask<T>(question: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    return kept(() => question(signal), () => this.#wake(signal));
  }

  read(file: File): Promise<void> {
    return this.#do('reading', async (signal) => {
      const response = await fetch(`api/piano/read?${new URLSearchParams({ name: file.name })}`, { method: 'POST', body: file, signal });
      const said = (await response.json()) as Sent & { error?: Failure };
      if (said.error) throw new Refused(said.error);
      this.#take(said, file.name);
    });
  }
  /** From nothing, or on from the first so many events. */
  compose(events: number[], seconds: number, seed: number, temperature: number): Promise<void> {
    return this.#do('composing', async (signal) => {
      const name = events.length ? this.name : '';
      this.#take(await this.#more(events, seconds, seed, temperature, signal), name);
    });
  }
  /** On from what somebody has just played. */
  answer(played: [number, number, number, number][], seconds: number, seed: number, temperature: number): Promise<void> {
    return this.#do('answering', async (signal) => {
      const mine = await post<Sent>('piano/notes', { notes: played }, signal);
      this.#take(await this.#more(mine.events, seconds, seed, temperature, signal), '');
    });
  }
  #more(events: number[], seconds: number, seed: number, temperature: number, signal: AbortSignal): Promise<Sent> {
    return this.ask((gone) => post<Sent>('piano/compose', { model: this.model, events, seconds, seed, temperature }, gone), signal);
  }

  async midi(): Promise<Blob> {
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ events: this.events }) };
    const response = await fetch('api/piano/midi', init);
    if (!response.ok) throw new Refused(((await response.json()) as { error: Failure }).error);
    return response.blob();
  }

  clear(): void {
    this.stop();
    player.pause();
    player.at = 0;
    Object.assign(this, { events: [], times: [], notes: [], given: 0, name: '', chosen: null, failure: null, version: this.version + 1 });
  }
  /** What is under way is given up. */
  stop(): void {
    this.#work?.abort();
    this.#work = null;
    this.work = '';
  }
  async #do(work: Work, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.stop();
    const mine = (this.#work = new AbortController());
    Object.assign(this, { work, failure: null });
    try {
      await run(mine.signal);
    } catch (error) {
      if (!mine.signal.aborted) this.failure = fault(error);
    } finally {
      if (this.#work === mine) this.stop();
    }
  }
  #take(sent: Sent, name: string): void {
    player.pause();
    const notes = sent.notes.map(([start, end, pitch, velocity, on, off]) => ({ start, end, pitch, velocity, on, off }));
    Object.assign(this, { events: sent.events, times: sent.times, notes, given: sent.given ?? sent.events.length, name, version: this.version + 1 });
    if (this.chosen !== null && this.chosen >= notes.length) this.chosen = null;
  }
}

export const piece = new Piece();
