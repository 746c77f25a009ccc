/** What the page begins with, and how a layer is called. */

import { number } from '../../lib/format';
import { t } from '../../state/preferences.svelte';

/** The article's word, in the article's two senses. */
export const USUAL = { one: "Let's stick to the plan.", other: 'He found a stick in the wood.', word: 'stick' };

/** What comes along and reads a sentence before it says what a word is like. */
export const INCLUDED = ['builtin', 'elmo', 'bert'];

/** The two sentences, by the names of their messages. */
export const SIDES = ['one', 'other'] as const;

export function layerName(name: string): string {
  if (name === 'mixed') return t('senses.layer_mixed');
  return name === 'residual.0' ? t('senses.layer_entry') : t('senses.layer_block', { n: name.split('.')[1]! });
}

/** A cosine with two digits; a bar for it is as long as it is above 0. */
export const cosine = (value: number): string => number(value, 2);
export const share = (value: number): number => Math.max(0, Math.min(1, value));
