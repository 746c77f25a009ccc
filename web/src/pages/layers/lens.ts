/** What `cutaway.inspect.lens` gives, and how the page cuts it. */

import { t } from '../../state/preferences.svelte';

/** The first position of the window that the chosen one is shown in: windows overlap by a quarter, and stay put. */
export function firstOf(at: number, tokens: number, size: number): number {
  if (tokens <= size) return 0;
  const step = size / 2;
  return Math.max(0, Math.min(tokens - size, Math.floor((at - size / 4) / step) * step));
}

/** `residual.0` is the embedding, `blocks.3.residual` what block 3 leaves behind. */
export function rowName(name: string): string {
  const block = /^blocks\.(\d+)\./.exec(name)?.[1];
  return block === undefined ? t('layers.embedding') : t('layers.block', { n: block });
}

/** How strongly a rank is shown: first is 1, and every tenfold fades. */
export const rankShare = (rank: number): number => Math.max(0, 1 - Math.log10(rank) / 3);
