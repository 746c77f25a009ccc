/** The colour tables of the theme being worn. */

import { scale, type Scale } from '../lib/colour';
import { preferences } from './preferences.svelte';

class Palette {
  #tables = $derived.by(() => {
    void preferences.dark;
    // The attribute that switches the theme is set in an effect; set it first, so that the colours read are the new ones.
    document.documentElement.dataset.theme = preferences.dark ? 'dark' : 'light';
    const look = getComputedStyle(document.documentElement);
    const stops = (...names: string[]): Scale => scale(names.map((name) => look.getPropertyValue(`--${name}`)));
    return {
      share: stops('share-0', 'share-1', 'share-2'),
      signed: stops('below', 'below-1', 'middle', 'above-1', 'above'),
      masked: scale([look.getPropertyValue('--sunken'), look.getPropertyValue('--sunken')])[0]!,
    };
  });
  get share(): Scale {
    return this.#tables.share;
  }
  get signed(): Scale {
    return this.#tables.signed;
  }
  /** The colour of what may not be looked at. */
  get masked(): number {
    return this.#tables.masked;
  }
}

export const palette = new Palette();
