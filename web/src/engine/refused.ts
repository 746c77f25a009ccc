/** What cannot be done, as the server says it: a code that the catalogues have words for, or an English sentence. */

import type { Values } from '../lib/catalogue';

export interface Failure {
  code: string;
  what: string;
  remedy: string;
  values: Values;
}

export class Refusal extends Error {
  readonly failure: Failure;
  constructor(code: string, what: string, values: Values = {}) {
    super(what);
    const [first = '', ...rest] = what.split('. ');
    this.failure = { code, what: first.endsWith('.') ? first : `${first}.`, remedy: rest.join('. '), values };
  }
}

/** An index, checked; negative ones count from the last. */
export function within(what: string, index: number, count: number): number {
  if (!Number.isInteger(index) || index < -count || index >= count) throw new Refusal('mistake', `There is no ${what} ${index}: they run from 0 to ${count - 1}.`);
  return index < 0 ? index + count : index;
}
