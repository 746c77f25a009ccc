/** The steps of the guided tour: one file each, in the order of their names; a step whose page is not there is left out. */

import type { Language } from '../lib/catalogue';
import type { Place } from '../lib/url';
import { pages } from '../pages';
import { find } from '../pages/walk/steps';

type Words = Record<Language, string>;

/** From one word to another, as the tokens are written: ` his`, ` ball`. */
export interface Looking {
  from: string;
  to: string;
}

export interface Head {
  layer: number;
  head: number;
}

/** What a file says. */
interface Written {
  page: string;
  /** What to set; `step` is the name of a step of the walk. With `find`, layer and head are those of the head that looks most from one word to another. */
  place: { text?: string; position?: number; layer?: number; head?: number; find?: Looking; step?: string; settings?: Record<string, string> };
  /** What to point at: the element whose `data-tour` says this. */
  point: string;
  title: Words;
  words: Words;
  try: Words;
}

export interface Step extends Written {
  name: string;
}

const files = import.meta.glob<Written>('./[0-9]*.json', { eager: true, import: 'default' });

/** What a step sets; `found` is the head it looks for. */
export function placeOf({ name, page, place }: Step, found: Head | null): Place {
  const { text = '', position = null, step } = place;
  const { layer, head } = found ?? { layer: place.layer ?? 0, head: place.head ?? 0 };
  const settings = Object.fromEntries(Object.entries(place.settings ?? {}).map(([key, value]) => [key, value.replaceAll('{layer}', String(layer)).replaceAll('{head}', String(head))]));
  return { page, model: 'builtin', text, more: [], position, layer, head, step: step ? find(step) : 0, settings, tour: name };
}

export const steps: Step[] = Object.entries(files)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .filter(([, step]) => pages.some((page) => page.name === step.page))
  .map(([path, step]) => ({ ...step, name: /\d+-([\w-]+)\.json$/.exec(path)![1]! }));
