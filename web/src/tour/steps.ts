/** The steps of the guided tour: one file each, in the order of their names; a step whose page is not there is left out. */

import type { Language } from '../lib/catalogue';
import { write, type Place } from '../lib/url';
import { pages } from '../pages';
import { find } from '../pages/walk/steps';

type Words = Record<Language, string>;

/** What a file says. */
interface Written {
  page: string;
  /** What to set; `step` is the name of a step of the walk. */
  place: { text?: string; position?: number; layer?: number; head?: number; step?: string; settings?: Record<string, string> };
  /** What to point at: the element whose `data-tour` says this. */
  point: string;
  title: Words;
  words: Words;
  try: Words;
}

export interface Step extends Written {
  name: string;
  /** Its address: following it shows the step. */
  address: string;
}

const files = import.meta.glob<Written>('./[0-9]*.json', { eager: true, import: 'default' });

function address(name: string, { page, place }: Written): string {
  const { text = '', position = null, layer = 0, head = 0, step, settings = {} } = place;
  const full: Place = { page, model: 'builtin', text, more: [], position, layer, head, step: step ? find(step) : 0, settings, tour: name };
  return write(full);
}

export const steps: Step[] = Object.entries(files)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .filter(([, step]) => pages.some((page) => page.name === step.page))
  .map(([path, step]) => {
    const name = /\d+-([\w-]+)\.json$/.exec(path)![1]!;
    return { ...step, name, address: address(name, step) };
  });
