/** What `cutaway.inspect.saliency` says of one target. */

import type { Saliency } from '../../lib/views';

export type Method = Saliency['method'];

/** The ways to find causes, in the order they are offered. */
export const METHODS: Method[] = ['gradient', 'integrated', 'occlusion', 'values', 'rollout'];

export interface Cause {
  position: number;
  share: number;
  signed: number;
}

/** A share as it is written: with a minus where the token speaks against the one explained. */
export const withSign = (share: string, signed: number): string => (signed < 0 ? `−${share}` : share);

/** The strongest causes first, for and against. */
export function strongest(shares: number[], signed: number[], most: number): Cause[] {
  return shares
    .map((share, position) => ({ position, share, signed: signed[position]! }))
    .filter((one) => one.share > 0)
    .sort((a, b) => b.share - a.share || a.position - b.position)
    .slice(0, most);
}
