/** What the notes attend to, window by window: a piece is longer than a model's context, so each note is read with those before it. */

import { SvelteMap } from 'svelte/reactivity';
import type { Notes } from '../../lib/views';
import { post, get } from '../../state/server.svelte';
import { fault, piece } from './piece.svelte';

export interface Line {
  head: number;
  to: number;
  weight: number;
}
/** Of one note: its lines, and what each head gives to no note. */
export interface Looks {
  lines: Line[];
  rest: number[];
}

const COUNT = 6; // earlier notes for each head

class Attended {
  #found = new SvelteMap<string, Looks[]>();
  #asked = new Set<string>();
  #version = -1;
  #life = new AbortController();
  /** Questions under way. */
  busy = $state(0);

  /** A window holds twice this many events; a note is read in the one whose second half it stands in. */
  get #half(): number {
    return Math.floor(((piece.shape?.context ?? 3) - 1) / 2);
  }
  #window(note: number): { key: number; start: number; end: number } {
    const half = this.#half;
    const key = Math.max(0, Math.floor((piece.notes[note]?.on ?? 0) / half) - 1);
    return { key, start: key * half, end: Math.min(piece.events.length, key * half + 2 * half) };
  }
  #first(start: number): number {
    const at = piece.notes.findIndex((one) => one.on >= start);
    return at < 0 ? piece.notes.length : at;
  }

  /** What a note attends to in a layer; null until it is known. */
  of(note: number, layer: number): Looks | null {
    if (note < 0 || !piece.shape || note >= piece.notes.length) return null;
    const { key, start } = this.#window(note);
    return this.#found.get(`${piece.version}/${layer}/${key}`)?.[note - this.#first(start)] ?? null;
  }

  /** Have it known what this note, and those around it, attend to. */
  want(note: number, layer: number): void {
    if (note < 0 || !piece.shape || note >= piece.notes.length) return;
    if (this.#version !== piece.version) {
      this.#version = piece.version;
      this.#life.abort();
      this.#life = new AbortController();
      this.#found.clear();
      this.#asked.clear();
      this.busy = 0;
    }
    const { key, start, end } = this.#window(note);
    const name = `${piece.version}/${layer}/${key}`;
    if (this.#asked.has(name)) return;
    this.#asked.add(name);
    void this.#learn(name, layer, start, end, this.#life.signal);
  }

  async #learn(name: string, layer: number, start: number, end: number, life: AbortSignal): Promise<void> {
    this.busy++;
    const more = [piece.about!.groups.find((one) => one.kind === 'end')!.first, ...piece.events.slice(start, end)];
    const first = this.#first(start);
    try {
      const said = await piece.ask(async (signal) => {
        const { id } = await post<{ id: string }>('traces', { model: piece.model, text: '', more }, signal);
        return get<Notes>(`traces/${id}/notes`, { layer, k: COUNT }, signal);
      }, life);
      if (life.aborted) return;
      const found = said.attended.map((heads, i) => ({
        lines: heads.flatMap((notes, head) => notes.map((to, k) => ({ head, to: first + to, weight: said.weights[i]![head]![k]! })).filter((one) => one.to >= first && one.weight > 0)),
        rest: said.rest[i]!,
      }));
      this.#found.set(name, found);
    } catch (error) {
      if (!life.aborted) {
        this.#asked.delete(name);
        piece.failure = fault(error);
      }
    } finally {
      if (!life.aborted) this.busy--;
    }
  }
}

export const attended = new Attended();
