/** The steps of the guided tour: one file each, in the order of their names; a step whose page is not there is left out. */

import type { Language } from '../lib/catalogue';
import type { Place } from '../lib/url';
import { pages } from '../pages';
import type { Claim, Fact, Facts, Question } from './facts';

type Words = Record<Language, string>;

/** What a file says. */
interface Written {
  page: string;
  /**
   * What to set; `step` is the name of a step of the walk. With `from`, what the fact of that name found (a layer, a head,
   * a position, tokens that were picked) is set, and `{layer}` and `{head}` stand for it in settings.
   */
  place: { text?: string; layer?: number; from?: string; step?: string; settings?: Record<string, string> };
  /** What is asked about the text, on the model being shown. */
  facts?: Record<string, Question>;
  /** What to point at: the element whose `data-tour` says this. */
  point: string;
  title: Words;
  /** What holds on any model. */
  words: Words;
  /** What holds on this one: the first that does is said. */
  here?: Claim[];
  try: Words;
}

export interface Step extends Written {
  name: string;
}

const files = import.meta.glob<Written>('./[0-9]*.json', { eager: true, import: 'default' });

/** What a step sets on a model, with what was found there. */
export function placeOf({ name, page, place }: Step, model: string, facts: Facts | null): Place {
  const found: Fact = (place.from && facts?.[place.from]) || {};
  const whole = (field: string): number | null => (found[field]?.as === 'count' ? found[field].value : null);
  const layer = whole('layer') ?? place.layer ?? 0;
  const head = whole('head') ?? 0;
  const settings = Object.fromEntries(Object.entries(place.settings ?? {}).map(([key, value]) => [key, value.replaceAll('{layer}', String(layer)).replaceAll('{head}', String(head))]));
  if (found.tree?.as === 'text') settings.tree = found.tree.value;
  const more = found.more?.as === 'ids' ? found.more.value : [];
  return { page, model, text: place.text ?? '', more, position: whole('position'), layer, head, step: place.step ?? '', settings, tour: name };
}

export const steps: Step[] = Object.entries(files)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .filter(([, step]) => pages.some((page) => page.name === step.page))
  .map(([path, step]) => ({ ...step, name: /\d+-([\w-]+)\.json$/.exec(path)![1]! }));
