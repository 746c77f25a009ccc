/** The machine as a place to be looked at: which floor stands where, made from the model's map alone. */

import { pattern, thing, type ModelMap, type Step } from '../../../state/map';

/** One step of the walk as a row of the machine. Heights are in floors; y counts upward from the tokens. */
export interface Station {
  step: number;
  /** -1 outside the blocks. */
  layer: number;
  operation: string;
  group: string;
  /** What it makes, by their names in the run. */
  places: string[];
  y: number;
  h: number;
}

export interface Floor {
  /** text: before the blocks; block; end: after them. */
  kind: 'text' | 'block' | 'end';
  layer: number;
  y: number;
  h: number;
  stations: Station[];
}

/** A part of a block, attention or MLP, that draws from the stream and adds to it. */
export interface Part {
  layer: number;
  group: string;
  y: number;
  h: number;
}

/** One length of the river: the stream between two additions. */
export interface Stage {
  name: string;
  layer: number;
  from: number;
  to: number;
}

/** A place that is drawn in a way of its own: where it is made, and in which part. */
export interface Found {
  name: string;
  station: Station;
  part: Part;
}

export interface Layout {
  map: ModelMap;
  floors: Floor[];
  stations: Station[];
  parts: Part[];
  stages: Stage[];
  /** Tables of attention weights, and places whose neurons fire. */
  looks: Found[];
  neurons: Found[];
  /** Tables whose keys are the tokens of another text, and places where a token hands its vector on to the next. */
  across: Found[];
  recurs: Found[];
  high: number;
}

/** How much of a floor a step takes. */
const ROOM: Record<string, number> = { token: 0.55, choose: 2.3, rank: 0.75, score: 1.4, mask: 1.4, softmax: 2, mix: 1.2, activate: 1.3, linear: 1.1, norm: 0.9, add: 0.85, merge: 0.9 };
/** And one that makes several things at once: each has a line of its own. */
const room = (step: Step): number => (step.places.length > 1 ? 0.62 * step.places.length : (ROOM[step.operation] ?? 1));
const OUTSIDE = 0.55;
export const BLOCK = 1.75;
const GAP = 0.12;

const at = (name: string, layer: number): string => name.replace('*', String(layer));

export function layout(map: ModelMap): Layout {
  const floors: Floor[] = [];
  const stations: Station[] = [];
  const parts: Part[] = [];
  let y = 0;
  const indexed = map.steps.map((step, index) => ({ step, index })).filter(({ step }) => step.operation !== 'stack');
  const first = indexed.findIndex(({ step }) => step.block);
  const row = (step: Step, index: number, layer: number, from: number, h: number): Station => ({
    step: index, layer, operation: step.operation, group: step.group, places: step.places.map((name) => at(name, layer)), y: from, h,
  });
  const outside = (kind: Floor['kind'], some: typeof indexed): void => {
    if (!some.length) return;
    const floor: Floor = { kind, layer: -1, y, h: 0, stations: [] };
    for (const { step, index } of some) {
      // The words at the top need the same room however many floors there are.
      const h = step.operation === 'choose' ? ROOM.choose! * (1 + map.layers / 16) : step.operation === 'rank' || step.operation === 'token' ? ROOM[step.operation]! : OUTSIDE;
      floor.stations.push(row(step, index, -1, y, h));
      y += h;
    }
    floor.h = y - floor.y;
    floors.push(floor);
    stations.push(...floor.stations);
    y += GAP;
  };
  outside('text', first < 0 ? indexed : indexed.slice(0, first));
  const inside = indexed.filter(({ step }) => step.block);
  const all = inside.reduce((sum, { step }) => sum + room(step), 0);
  for (let layer = 0; layer < map.layers && inside.length; layer++) {
    const floor: Floor = { kind: 'block', layer, y, h: BLOCK, stations: [] };
    let up = y + 0.05;
    for (const { step, index } of inside) {
      const h = (room(step) * (BLOCK - 0.1)) / all;
      const station = row(step, index, layer, up, h);
      floor.stations.push(station);
      const last = parts.at(-1);
      if (last && last.layer === layer && last.group === step.group) last.h = up + h - last.y;
      else parts.push({ layer, group: step.group, y: up, h });
      up += h;
    }
    floors.push(floor);
    stations.push(...floor.stations);
    y += BLOCK + GAP;
  }
  if (first >= 0) outside('end', indexed.slice(first).filter(({ step }) => !step.block));
  const high = y - GAP;
  const partOf = (station: Station): Part => parts.find((one) => one.layer === station.layer && one.group === station.group) ?? { layer: station.layer, group: station.group, y: station.y, h: station.h };
  const made = stations.filter((one) => map.steps[one.step]!.operation !== 'show');
  const of = (operation: string): Found[] =>
    made.filter((one) => one.operation === operation && one.places.length).map((station) => ({ name: station.places[0]!, station, part: partOf(station) }));
  const tables = of('softmax').filter(({ name }) => isTable(map, name));
  const [looks, across] = [false, true].map((wanted) => tables.filter(({ name }) => isAcross(map, name) === wanted)) as [Found[], Found[]];
  return { map, floors, stations, parts, stages: river(map, made, high), looks, across, recurs: of('recur'), neurons: of('activate'), high };
}

/** The stream from addition to addition; of a model that adds nothing, from vector to vector. */
function river(map: ModelMap, made: Station[], high: number): Stage[] {
  const vector = (name: string): boolean => thing(map, name)?.axes.join() === 'token,column' && name !== 'logits';
  const some = (wanted: (operation: string) => boolean): Station[] => made.filter((one) => wanted(one.operation) && one.places.some(vector));
  const added = some((operation) => operation === 'add');
  const chosen = added.length ? added : some(() => true);
  const last = added.length ? some((operation) => operation === 'norm').filter((one) => one.layer < 0 && one.y > chosen.at(-1)!.y) : [];
  const all = [...chosen, ...last];
  const top = made.find((one) => one.operation === 'rank')?.y ?? high;
  return all.map((one, i) => ({ name: one.places.find(vector)!, layer: one.layer, from: one.y + one.h / 2, to: all[i + 1] ? all[i + 1]!.y + all[i + 1]!.h / 2 : top }));
}

/** What a place is made of, by names in the run: in a later block, what enters the first from outside comes from the block before. */
export function inputs(map: ModelMap, name: string): string[] {
  const layer = Number(/^blocks\.(\d+)\./.exec(name)?.[1] ?? -1);
  const last = map.steps.findLast((step) => step.block)?.places[0];
  return (thing(map, name)?.inputs ?? []).map((one) => {
    if (one.startsWith('blocks.*')) return layer >= 0 ? at(one, layer) : at(one, map.layers - 1);
    return layer > 0 && last && thing(map, one) ? at(last, layer - 1) : one;
  });
}

/** The row in which a place is made. */
export const stationOf = (world: Layout, name: string): Station | undefined => world.stations.find((one) => one.operation !== 'show' && one.places.includes(name));

/** Where in its row a place stands, if the row makes several: from 0 at the bottom to 1. */
export function lane(station: Station, name: string): { from: number; to: number } {
  const i = Math.max(0, station.places.indexOf(name));
  const n = Math.max(1, station.places.length);
  return { from: (n - 1 - i) / n, to: (n - i) / n };
}

/** How many numbers a vector of this place has, against the stream: an MLP is wider. */
export const isWide = (map: ModelMap, name: string): boolean => ['hidden', 'neurons'].includes(thing(map, name)?.kind ?? '');
/** The strip of a vector takes so much of its column to each side: one of an MLP more. */
export const halfOf = (map: ModelMap, name: string): number => (isWide(map, name) ? 0.42 : 0.34);
export const isHeads = (map: ModelMap, name: string): boolean => thing(map, name)?.axes[0] === 'head';
export const isTable = (map: ModelMap, name: string): boolean => thing(map, name)?.axes.at(-1) === 'key';
/** Whether a place is made of the other text: a vector of its tokens, or a table of which of them is attended to. */
export function isAcross(map: ModelMap, name: string): boolean {
  const made = thing(map, name)?.inputs ?? [];
  const foreign = (one: string): boolean => !thing(map, one) && !['ids', 'positions', 'segments'].includes(one);
  return isTable(map, name) ? made.some((one) => foreign(one) || isAcross(map, one)) : made.length > 0 && made.every(foreign);
}
export { pattern };
