/** What a head does, judged by where its weight goes on this text. */

export interface Heads {
  layers: number[];
  entropy: number[][];
  distance: number[][];
  previous: number[][];
  first: number[][];
  itself: number[][];
  induction: number[][] | null;
  induction_queries: number;
  picture: { size: number; pixels: string[][] } | null;
}

export const KINDS = ['first', 'previous', 'itself', 'induction', 'mixed'] as const;
export type Kind = (typeof KINDS)[number];

export interface Head {
  layer: number;
  head: number;
  kind: Kind;
  entropy: number;
  distance: number;
  shares: Record<Exclude<Kind, 'mixed'>, number | null>;
  /** How many queries the induction is the mean over. */
  queries: number;
  pixels: string;
}

const CLEAR = 0.4; // this much of its weight, on average, makes a head one of a kind

export function list(found: Heads): Head[] {
  return found.layers.flatMap((layer, i) =>
    found.previous[i]!.map((previous, head) => {
      const shares = {
        first: found.first[i]![head]!,
        previous,
        itself: found.itself[i]![head]!,
        induction: found.induction?.[i]?.[head] ?? null,
      };
      const best = (Object.entries(shares) as [Exclude<Kind, 'mixed'>, number | null][]).reduce((a, b) => ((b[1] ?? 0) > (a[1] ?? 0) ? b : a));
      return {
        layer,
        head,
        kind: (best[1] ?? 0) >= CLEAR ? best[0] : 'mixed',
        entropy: found.entropy[i]![head]!,
        distance: found.distance[i]![head]!,
        shares,
        queries: found.induction_queries,
        pixels: found.picture?.pixels[i]?.[head] ?? '',
      };
    }),
  );
}
