/** The one moment that every page is a view of: model, text, position, layer, head, step. It stands in the address. */

import beginning from '../lib/beginning.json';
import { site } from '../lib/site';
import { read, write, type Beside, type Place } from '../lib/url';
import { spell, type Token } from '../lib/token';
import type { ModelMap } from './map';
import { models, NotOpened } from './models.svelte';
import { Past } from './past';
import { connection, getTable, get, keepAsking, kept, post, type Answer, type Query } from './server.svelte';
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
  /** The map of its model. */
  map: ModelMap;
  /** The settings the model is recommended to write with. */
  recommended: { temperature?: number; top_k?: number | null; top_p?: number };
  /** What was asked for: the moment's own values, so that they can be told from later ones. */
  asked: { model: string; text: string; more: number[] };
}

/** What a model has that does not say otherwise: not every kind has layers and heads. */
const PLAIN: Shape = { layers: 1, heads: 1, width: 0, head_width: 0, mlp_width: 0, vocabulary: 0, context: Infinity };
const TYPING = 120;
const PLAYING = 600;
export const USUAL: Place = {
  page: 'predict',
  model: site?.model ?? 'builtin',
  text: site?.text ?? beginning.text,
  more: [],
  position: null,
  layer: 0,
  head: 0,
  step: '',
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
  step = $state('');
  /** The step of the guided tour; empty when there is none. */
  tour = $state('');
  /** Whether the tour is taken on this text, and not on that of its steps. */
  own = $state(false);
  present = $state(false);
  /** Whether a story is being played: the address then follows at rest, since writing it costs more than a frame has. */
  playing = $state(false);
  /** What stands on the other side; null: there is one side. */
  beside = $state.raw<Beside | null>(null);
  /** What only one page knows, by page. */
  settings = $state<Record<string, Record<string, string>>>({});

  /** The model that was chosen last and could not be opened: the pictures, and all else, stay with the one before. */
  notOpened = $state.raw<NotOpened | null>(null);

  /** The model that is loaded: what needs no text, like its weights, need not wait for one. */
  ready = $state<string | null>(null);
  /** The tokens of the first text, which are known long before it has been read. */
  cut = $state.raw<Token[]>([]);

  readonly past = new Past(
    () => this.#stand(),
    (settings) => this.#take(settings),
  );
  #asked: Answer<Trace> | null = null;
  /** The map of the model that was asked last. */
  #map: { model: string; map: ModelMap } | null = null;
  #again = $state(0);
  #remade: (() => void)[] = [];

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
  /** Whether the text carried through is the one that is asked for now, and not the one before. */
  get current(): boolean {
    const asked = this.trace?.asked;
    return asked?.model === this.model && asked.text === this.text && asked.more === this.more;
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

  /** Take back the last token picked; false where none was. */
  unpick(): boolean {
    if (!this.more.length) return false;
    this.more = this.more.slice(0, -1);
    this.position = null;
    return true;
  }

  /** Another model: its tokens are others, so what was picked becomes text. */
  use(model: string): void {
    this.notOpened = null;
    if (model !== this.model && this.more.length && this.trace) this.write(this.trace.text);
    this.model = model;
  }

  go(page: string): void {
    if (page === this.page) return;
    this.past.turn();
    this.page = page;
    this.#stand();
  }

  again(): void {
    this.#again++;
  }

  place(): Place {
    const { page, model, text, more, position, layer, head, step, tour, own, present, beside } = this;
    return { page, model, text, more, position, layer, head, step, tour, own, present, beside, settings: { ...this.settings[page] } };
  }

  /** Take over what a place says, without a new entry in the browser's history. */
  show({ page, settings, ...place }: Place): void {
    Object.assign(this, place, { page });
    this.settings[page] = settings;
  }

  link(): string {
    return location.href.replace(/#.*$/s, '') + write(this.place());
  }

  /** Take the state from the address, then keep both the same; begin to carry the text through the model. */
  start(): { lang?: string; theme?: string } {
    const asked = this.#take(this.past.settings);
    connection.remake = () => {
      this.again();
      return new Promise((done) => this.#remade.push(done));
    };
    this.past.start();
    $effect.root(() => {
      $effect(() => {
        void write(this.place());
        const timer = setTimeout(() => this.#stand(), this.playing ? PLAYING : 60);
        return () => clearTimeout(timer);
      });
      this.#asked = keepAsking<Trace>(
        () => {
          const { model, text, more } = this;
          void this.#again;
          return async (signal) => {
            try {
              if (this.ready !== model) await models.wake(model, signal);
            } catch (error) {
              const before = this.trace?.model;
              if (!(error instanceof NotOpened) || before === undefined || before === model) throw error;
              this.notOpened = error;
              this.model = before;
              return this.trace!;
            }
            this.ready = model;
            if (!this.trace) void post<Token[]>('tokens', { model, text, ids: more }, signal).then((cut) => (this.cut = spell(cut)), () => undefined);
            const carried = () => Promise.all([post<Omit<Trace, 'asked' | 'map'>>('traces', { model, text, more }, signal), this.#mapOf(model, signal)]);
            const [trace, map] = await kept(carried, () => models.wake(model, signal)); // the server may have put it to sleep since
            for (const done of this.#remade.splice(0)) done();
            return { ...trace, map, shape: { ...PLAIN, ...trace.shape }, tokens: spell(trace.tokens), asked: { model, text, more } };
          };
        },
        { wait: TYPING },
      );
    });
    return asked;
  }

  async #mapOf(model: string, signal: AbortSignal): Promise<ModelMap> {
    if (this.#map?.model !== model) this.#map = { model, map: await get<ModelMap>('models/map', { name: model }, signal) };
    return this.#map.map;
  }

  /** Have the address say where the moment is. */
  #stand(): void {
    const there = write(this.place());
    if (location.hash !== there || history.state === null) this.past.write(there, $state.snapshot(this.settings));
  }
  /** Be where the address says; `all` are the settings that the other pages had there. */
  #take(all: Record<string, Record<string, string>> | null): { lang?: string; theme?: string } {
    const { lang, theme, ...place } = read(location.hash, USUAL);
    if (all) this.settings = { ...all };
    this.show(place);
    return { lang, theme };
  }
}

export const moment = new Moment();

/** A page's question about the text being shown: `view` is the path after /api/traces/ID/. Null asks nothing. */
export function askTrace<T>(question: () => { view: string; query?: Query } | null, wait = 0): Answer<T & About> {
  return about((trace, asked, signal) => get<T>(`traces/${trace}/${asked.view}`, asked.query, signal), question, wait);
}

/** The same for a table of numbers. */
export function askTable(question: () => { view: string; query?: Query } | null): Answer<Table & About> {
  return about((trace, asked, signal) => getTable(`traces/${trace}/${asked.view}`, asked.query, signal), question, 0);
}

type Question = { view: string; query?: Query };

/** An answer says of which trace and which view it is: a page may still show the last one while the next is under way. */
export type About = { of: string; view: string; query?: Query };

function about<T>(ask: (trace: string, asked: Question, signal: AbortSignal) => Promise<T>, question: () => Question | null, wait: number): Answer<T & About> {
  return keepAsking<T & About>(
    () => {
      const trace = moment.trace;
      const asked = question();
      return trace && asked ? async (signal) => ({ ...(await ask(trace.id, asked, signal)), of: trace.id, view: asked.view, query: asked.query }) : null;
    },
    { wait },
  );
}
