/** The one moment that every page is a view of: model, text, position, layer, head, step. It stands in the address. */

import { read, write, type Place } from '../lib/url';
import type { Token } from '../lib/token';
import { models } from './models.svelte';
import { getTable, get, keepAsking, post, type Answer, type Query } from './server.svelte';
import type { Table } from '../lib/binary';

export interface Shape {
  layers: number;
  heads: number;
  width: number;
  head_width: number;
  mlp_width: number;
  vocabulary: number;
  context: number;
}

/** A text carried through the model: what POST /api/traces gives. */
export interface Trace {
  id: string;
  model: string;
  text: string;
  tokens: Token[];
  prompt: number;
  shape: Shape;
  /** The settings the model is recommended to write with. */
  recommended: { temperature?: number; top_k?: number | null; top_p?: number };
  names: string[];
}

const TYPING = 120;
const USUAL: Place = {
  page: 'predict',
  model: 'builtin',
  text: 'Once upon a time, there was a little girl named Lily. She',
  more: [],
  position: null,
  layer: 0,
  head: 0,
  step: 0,
  settings: {},
};

class Moment {
  page = $state(USUAL.page);
  model = $state(USUAL.model);
  text = $state(USUAL.text);
  more = $state.raw<number[]>([]);
  position = $state<number | null>(null);
  layer = $state(0);
  head = $state(0);
  step = $state(0);
  /** The step of the guided tour; empty when there is none. */
  tour = $state('');
  /** What only one page knows, by page. */
  settings = $state<Record<string, Record<string, string>>>({});

  #asked: Answer<Trace> | null = null;
  #again = $state(0);

  /** Whether the text is still the one that every visit begins with. */
  get untouched(): boolean {
    return this.text === USUAL.text && !this.more.length;
  }

  /** The text carried through; while a new one is under way, still the last. */
  get trace(): Trace | null {
    return this.#asked?.value ?? null;
  }
  get failure() {
    return this.#asked?.failure ?? null;
  }
  get busy(): boolean {
    return this.#asked?.busy ?? true;
  }
  get tokens(): Token[] {
    return this.trace?.tokens ?? [];
  }
  /** The chosen token's position, within the text there is. */
  get at(): number {
    const last = Math.max(0, this.tokens.length - 1);
    return Math.min(this.position ?? last, last);
  }
  get atLayer(): number {
    return Math.min(this.layer, (this.trace?.shape.layers ?? 1) - 1);
  }
  get atHead(): number {
    return Math.min(this.head, (this.trace?.shape.heads ?? 1) - 1);
  }

  /** A setting of the page being shown. */
  setting(name: string, usual: string, page = this.page): string {
    return this.settings[page]?.[name] ?? usual;
  }
  numeric(name: string, usual: number): number {
    const value = Number(this.setting(name, String(usual)));
    return Number.isFinite(value) ? value : usual;
  }
  /** Set it; what is usual is left out of the address. */
  set(name: string, value: string | number, usual: string | number = '', page = this.page): void {
    const mine = { ...this.settings[page] };
    if (String(value) === String(usual)) delete mine[name];
    else mine[name] = String(value);
    this.settings[page] = mine;
  }

  /** Another text: picks and branches belonged to the old one. */
  write(text: string): void {
    this.text = text;
    this.more = [];
    this.position = null;
    for (const page of Object.keys(this.settings)) this.set('tree', '', '', page);
  }

  /** Choose a token; the last one stays the last when the text grows. */
  choose(position: number): void {
    const last = this.tokens.length - 1;
    this.position = position >= last ? null : Math.max(0, position);
  }

  /** Another model: its tokens are others, so what was picked becomes text. */
  use(model: string): void {
    if (this.more.length && this.trace) this.write(this.trace.text);
    this.model = model;
  }

  go(page: string): void {
    if (page === this.page) return;
    history.pushState(null, '', write({ ...this.place(), page, settings: this.settings[page] ?? {} }));
    this.page = page;
  }

  again(): void {
    this.#again++;
  }

  place(): Place {
    const { page, model, text, more, position, layer, head, step, tour } = this;
    return { page, model, text, more, position, layer, head, step, tour, settings: { ...this.settings[page] } };
  }

  link(): string {
    return location.href.replace(/#.*$/s, '') + write(this.place());
  }

  /** Take the state from the address, then keep both the same; begin to carry the text through the model. */
  start(): { lang?: string; theme?: string } {
    const asked = this.#take();
    addEventListener('popstate', () => this.#take());
    addEventListener('hashchange', () => this.#take());
    $effect.root(() => {
      $effect(() => {
        const there = write(this.place());
        const timer = setTimeout(() => {
          if (location.hash !== there) history.replaceState(null, '', there);
        }, 60);
        return () => clearTimeout(timer);
      });
      this.#asked = keepAsking<Trace>(
        () => {
          const { model, text, more } = this;
          void this.#again;
          return async (signal) => {
            await models.wake(model, signal);
            return post<Trace>('traces', { model, text, more }, signal);
          };
        },
        { wait: TYPING },
      );
    });
    return asked;
  }

  #take(): { lang?: string; theme?: string } {
    const { settings, lang, theme, ...place } = read(location.hash, USUAL);
    Object.assign(this, place);
    this.settings[place.page] = settings;
    return { lang, theme };
  }
}

export const moment = new Moment();

/** A page's question about the text being shown: `view` is the path after /api/traces/ID/. Null asks nothing. */
export function askTrace<T>(question: () => { view: string; query?: Query } | null, wait = 0): Answer<T> {
  return keepAsking<T>(
    () => {
      const trace = moment.trace;
      const asked = question();
      return trace && asked ? (signal) => get<T>(`traces/${trace.id}/${asked.view}`, asked.query, signal) : null;
    },
    { wait, onforgotten: () => moment.again() },
  );
}

/** The same for a table of numbers. */
export function askTable(question: () => { view: string; query?: Query } | null): Answer<Table & { of: string }> {
  return keepAsking<Table & { of: string }>(
    () => {
      const trace = moment.trace;
      const asked = question();
      if (!trace || !asked) return null;
      return async (signal) => ({
        ...(await getTable(`traces/${trace.id}/${asked.view}`, asked.query, signal)),
        of: trace.id,
      });
    },
    { onforgotten: () => moment.again() },
  );
}
