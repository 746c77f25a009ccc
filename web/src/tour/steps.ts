/** The steps of guided tours: those of the built-in one, a file each, in the order of their names; and of one somebody wrote. */

import type { Language } from '../lib/catalogue';
import type { Beside, Place } from '../lib/url';
import { pages } from '../pages';
import type { Claim, Fact, Facts, Question } from './facts';

type Words = Record<Language, string>;

/** What is to be guessed before the picture shows: one of some answers, or a value of a fact (`next.token`). */
export interface Guess {
  question: Words;
  options?: Claim[];
  /** The number of the right answer; without it, the first whose bounds hold, or else the one without bounds. */
  right?: number;
  answer?: string;
}

/** What a file says: the fields are described in docs/classroom.md. */
interface Written {
  page: string;
  /**
   * What to set; `step` is the name of a step of the walk. With `from`, what the fact of that name found (a layer, a head,
   * a position, tokens that were picked) is set, and `{layer}` and `{head}` stand for it in settings. With `model`, the step is
   * about that one, whichever the tour is on.
   */
  place: { model?: string; text?: string; position?: number; layer?: number; head?: number; from?: string; step?: string; settings?: Record<string, string>; beside?: Beside };
  /** What is asked about the text, on the model being shown. */
  facts?: Record<string, Question>;
  /** What to point at: the element whose `data-tour` says this. */
  point: string;
  title: Words;
  /** What holds on any model. */
  words: Words;
  /** What holds on this one: the first that does is said. */
  here?: Claim[];
  ask?: Guess;
  try?: Words;
  /** What it says on a text of the reader's own instead; false: it is about its own text only. */
  own?: false | { words?: Words; here?: Claim[]; try?: Words };
  /** For whoever presents, on the remote control alone. */
  notes?: Words;
}

export interface Step extends Written {
  name: string;
}

/** A tour that somebody wrote, as GET /api/tour says it; a step may be one of the built-in tour, with changes. */
export interface Given {
  title: Words;
  model: string | null;
  steps: (Partial<Written> & { name: string; use?: string })[];
}

const files = import.meta.glob<string>('./[0-9]*.json', { eager: true, query: '?raw', import: 'default' });

/** What a step sets on a model, with what was found there; on a text of the reader's own, the rest. */
export function placeOf({ name, page, place }: Step, model: string, facts: Facts | null, text = place.text ?? ''): Place {
  const found: Fact = (place.from && facts?.[place.from]) || {};
  const whole = (field: string): number | null => (found[field]?.as === 'count' ? found[field].value : null);
  const layer = whole('layer') ?? place.layer ?? 0;
  const head = whole('head') ?? place.head ?? 0;
  const settings = Object.fromEntries(Object.entries(place.settings ?? {}).map(([key, value]) => [key, value.replaceAll('{layer}', String(layer)).replaceAll('{head}', String(head))]));
  if (found.tree?.as === 'text') settings.tree = found.tree.value;
  const more = found.more?.as === 'ids' ? found.more.value : [];
  return { page, model: place.model ?? model, text, more, position: whole('position') ?? place.position ?? null, layer, head, step: place.step ?? '', settings, tour: name, beside: place.beside ?? null };
}

const shown = (step: Step): boolean => pages.some((page) => page.name === step.page);

export const steps: Step[] = Object.entries(files)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([path, step]) => ({ ...(JSON.parse(step) as Written), name: /\d+-([\w-]+)\.json$/.exec(path)![1]! }))
  .filter(shown);

/** The steps of a tour that somebody wrote, each whole. */
export const stepsOf = (given: Given): Step[] =>
  given.steps
    .map(({ use, ...own }) => {
      const base = steps.find((one) => one.name === use);
      return { ...base, ...own, place: { ...base?.place, ...own.place } } as Step;
    })
    .filter(shown);

/** The step as it is on a text of the reader's own. */
export const owned = (step: Step): Step => (step.own ? { ...step, ...step.own } : step);
