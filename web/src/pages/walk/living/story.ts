/** The forward pass as a line of stops, and how long the story stays at each. */

import type { ModelMap } from '../../../state/map';
import { inside, journey, type Stand } from '../steps';

/** Every stop of the journey, in order. */
export function stops(map: ModelMap): Stand[] {
  const { first, last } = inside(map);
  const found: Stand[] = [];
  for (let n = 0; n <= journey(map); n++) {
    const size = last - first + 1;
    if (first < 0 || n < first) found.push({ step: n, layer: 0 });
    else if (n < first + size * map.layers) found.push({ step: first + ((n - first) % size), layer: Math.floor((n - first) / size) });
    else found.push({ step: n - size * (map.layers - 1), layer: map.layers - 1 });
  }
  return found;
}

/** The whole story, in seconds. */
export const STORY = 90;
/** The first block is told slowly; those after it do the same again. */
const SLOW = 2.7;

/** How many seconds the way to each stop takes: together ninety. */
export function pace(map: ModelMap, line: Stand[]): Float32Array {
  const times = new Float32Array(line.length);
  const again = line.filter(({ step, layer }) => map.steps[step]!.block && layer > 0).length;
  const told = line.length - 1 - again;
  const slow = again ? Math.min(SLOW, (STORY * 0.72) / told) : STORY / Math.max(1, told);
  const quick = again ? (STORY - slow * told) / again : 0;
  line.forEach(({ step, layer }, n) => (times[n] = n === 0 ? 0 : map.steps[step]!.block && layer > 0 ? quick : slow));
  return times;
}

/** What a stop is called in a list: the thing that it makes. */
export function address(map: ModelMap, { step, layer }: Stand): string {
  const one = map.steps[step]!;
  return one.places[0]?.replace('*', String(layer)) ?? one.name;
}
