/** What `cutaway.inspect.saliency` says of one target. */

import type { Token } from '../../lib/token';

export type Method = 'gradient' | 'integrated';

export interface Saliency {
  method: Method;
  targets: { position: number; token: Token; probability: number }[];
  share: number[][];
  norm: number[];
  gap: number[] | null;
}

/** The strongest causes first: positions and shares. */
export function strongest(shares: number[], most: number): { position: number; share: number }[] {
  return shares
    .map((share, position) => ({ position, share }))
    .filter((one) => one.share > 0)
    .sort((a, b) => b.share - a.share || a.position - b.position)
    .slice(0, most);
}
