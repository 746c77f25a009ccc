/**
 * Two sides: the page twice, each in a frame of its own, in step. What one side turns (page, layer, head, step, token, settings)
 * the other turns as well; each has its own text and model. The window around them holds the moment of the left side and, in the
 * address, what is different on the right.
 */

import type { Language } from '../lib/catalogue';
import { read, write, type Place } from '../lib/url';
import type { Beside, Pair } from '../lib/views';
import { models } from '../state/models.svelte';
import { moment, USUAL } from '../state/moment.svelte';
import { preferences, type Theme } from '../state/preferences.svelte';
import { kept, keepAsking, post, type Answer } from '../state/server.svelte';

export type Side = 'left' | 'right';

/** Which side this window is; none in the window around both. */
export const side = ((new URLSearchParams(location.search).get('side') ?? '') as Side | '') || null;

/** What is compared on each page; on the others its numbers are, as they stand (marking.ts). */
const COMPARED: Record<string, string> = { predict: 'next', change: 'next', map: 'next', walk: 'stream', attention: 'attention', layers: 'layers', causes: 'causes', neurons: 'neurons', generate: 'written', weights: 'weights' };

interface Told {
  cutaway: 'show';
  address: string;
  /** Which tokens are not the same on the other side. */
  marks: number[];
  language: Language;
  theme: Theme;
}
interface Heard {
  cutaway: 'here';
  side: Side;
  address: string;
}

class Sides {
  readonly frames: Partial<Record<Side, HTMLIFrameElement>> = {};
  /** The address each side is at, as it said itself or was told. */
  #at: Partial<Record<Side, string>> = {};
  answer = $state.raw<Answer<Beside> | null>(null);

  get pairs(): Pair[] {
    return this.answer?.value?.pairs ?? [];
  }
  /** What is compared on the page being shown. */
  get of(): string | null {
    return COMPARED[moment.page] ?? null;
  }
  /** The model and the text of a side. */
  sideOf(one: Side): { model: string; text: string; more: number[] } {
    const { model, text, more, beside } = moment;
    if (one === 'left' || !beside) return { model, text, more };
    const same = beside.text === undefined && beside.model === undefined;
    return { model: beside.model ?? model, text: beside.text ?? text, more: same ? more : [] };
  }
  /** Keeps asking how the sides differ; call it while a component is being made. */
  compare(): void {
    this.answer = keepAsking<Beside>(
      () => {
        if (!moment.beside) return null;
        const [left, right] = [this.sideOf('left'), this.sideOf('right')];
        const { layer, head, position } = moment;
        const asked = { left, right, of: this.of ?? 'next', layer, head, position: position ?? -1, other: moment.beside.position ?? null };
        return (signal) => kept(() => post<Beside>('beside', asked, signal), async () => {
          for (const { model } of [left, right]) await models.wake(model, signal);
        });
      },
      { wait: 120 },
    );
  }

  /** Where a token of one side is on the other; null stays the last. */
  #across(position: number | null, from: Side): number | null {
    if (position === null) return null;
    const to = from === 'left' ? 'right' : 'left';
    let found = 0;
    for (const pair of this.pairs) {
      found = pair[to] ?? found;
      if (pair[from] === position) break;
    }
    return found;
  }
  #place(one: Side): Place {
    const place = { ...moment.place(), ...this.sideOf(one), tour: '', own: false, beside: null };
    return one === 'left' ? place : { ...place, position: moment.beside?.position ?? this.#across(moment.position, 'left') };
  }
  /** The address a frame begins at. */
  start(one: Side): string {
    return `?side=${one}${(this.#at[one] = write(this.#place(one)))}`;
  }
  /** Have both frames show the moment; read inside an effect. */
  tell(): void {
    const { language, theme } = preferences;
    for (const one of ['left', 'right'] as const) {
      const address = write(this.#place(one));
      const marks = this.pairs.filter((pair) => !pair.same && pair[one] !== null).map((pair) => pair[one]!);
      this.#at[one] = address;
      this.frames[one]?.contentWindow?.postMessage({ cutaway: 'show', address, marks, language, theme } satisfies Told, location.origin);
    }
  }
  /** A hand was on one of the sides: what it turned is turned on both. */
  hear({ side: one, address }: Heard): void {
    if (!moment.beside || this.#at[one] === address) return;
    this.#at[one] = address;
    const place = read(address, USUAL);
    const { page, layer, head, step, settings, model, text, more, position } = place;
    moment.show({ ...moment.place(), page, layer, head, step, settings });
    if (one === 'left') {
      Object.assign(moment, { model, text, more, position });
      if (moment.beside.position !== undefined) moment.beside = { ...moment.beside, position: undefined };
      return;
    }
    const other = this.sideOf('right');
    const back = this.#across(position, 'right');
    const alone = position !== null && this.#across(back, 'left') !== position;
    moment.beside = {
      text: text === moment.text && moment.beside.text === undefined ? undefined : text,
      model: model === other.model ? moment.beside.model : model,
      position: alone ? (position ?? undefined) : undefined,
    };
    if (!alone) moment.position = back;
  }

  begin(): void {
    moment.beside = { text: moment.trace?.text ?? moment.text };
  }
  end(): void {
    moment.beside = null;
  }
  /** Left becomes right. */
  swap(): void {
    const [left, right] = [this.sideOf('left'), this.sideOf('right')];
    Object.assign(moment, { model: right.model, text: right.text, more: [], position: null });
    moment.beside = { text: left.text, model: left.model };
  }
}

export const sides = new Sides();

/** Inside a frame: which tokens are not the same on the other side. */
class Marks {
  all = $state.raw<Set<number>>(new Set());
}
export const marks = new Marks();

/** Inside a frame: show what the window around it says, and say what a hand here has turned. */
export function join(): void {
  if (!side) return;
  document.documentElement.dataset.side = side;
  addEventListener('message', ({ origin, source, data }: MessageEvent<Told>) => {
    if (origin !== location.origin || source !== parent || data?.cutaway !== 'show') return;
    preferences.language = data.language;
    preferences.theme = data.theme;
    marks.all = new Set(data.marks);
    if (write(moment.place()) !== data.address) moment.show(read(data.address, USUAL));
  });
  $effect.root(() => {
    $effect(() => parent.postMessage({ cutaway: 'here', side, address: write(moment.place()) } satisfies Heard, location.origin));
  });
}
