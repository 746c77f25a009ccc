/** What a head does, judged by where its weight goes on this text. */

import type { Heads } from '../../lib/views';

export const KINDS = ['first', 'previous', 'itself', 'induction', 'mixed'] as const;
export type Kind = (typeof KINDS)[number];
type Share = Exclude<Kind, 'mixed'>;

export interface Head {
  layer: number;
  head: number;
  kind: Kind;
  /** How many times what an even look would give. */
  clear: number;
  entropy: number;
  distance: number;
  shares: Record<Share, number | null>;
  /** How many queries the induction is the mean over. */
  queries: number;
  pixels: string;
}

/** A head is of a kind if that place gets so many times what it would get from a head that looks at all tokens alike. */
const CLEAR = 1.5;

/** What each place would get from a head that looks at all tokens alike, over the queries that can have it. */
export function even(ids: number[]): Record<Share, number> {
  const mean = (queries: number[]): number => queries.reduce((sum, i) => sum + 1 / (i + 1), 0) / Math.max(1, queries.length);
  const rest = mean(ids.map((_, i) => i).slice(1)) || 1; // a text of one token: all of it on itself
  const last = new Map<number, number>();
  const again: number[] = [];
  ids.forEach((id, i) => {
    if (last.has(id) && last.get(id)! + 1 < i) again.push(i);
    last.set(id, i);
  });
  return { first: rest, previous: rest, itself: rest, induction: mean(again) || 1 };
}

export function list(found: Heads, ids: number[]): Head[] {
  const usual = even(ids);
  return found.layers.flatMap((layer, i) =>
    found.entropy[i]!.map((entropy, head) => {
      const shares = {
        first: found.first?.[i]?.[head] ?? null,
        previous: found.previous?.[i]?.[head] ?? null,
        itself: found.itself[i]![head]!,
        induction: found.induction?.[i]?.[head] ?? null,
      };
      const clear = (kind: Share): number => (shares[kind] ?? 0) / usual[kind];
      const best = (Object.keys(shares) as Share[]).reduce((a, b) => (clear(b) > clear(a) ? b : a));
      return {
        layer,
        head,
        kind: ids.length > 1 && clear(best) < CLEAR ? 'mixed' : best,
        clear: clear(best),
        entropy,
        distance: found.distance[i]![head]!,
        shares,
        queries: found.induction_queries,
        pixels: found.picture?.pixels[i]?.[head] ?? '',
      };
    }),
  );
}
