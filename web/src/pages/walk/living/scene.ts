/** What the living view shows: the machine, a text in it, where the story stands. Painters read it; `describe` says it. */

import type { Token } from '../../../lib/token';
import { thing, type ModelMap } from '../../../state/map';
import { title } from '../steps';
import type { Stand } from '../steps';
import { Camera, type Box, type Margin } from './camera';
import { BLOCK, halfOf, lane, layout, stationOf, type Layout, type Station } from './layout';
import { ramp } from './ink';
import { address, pace, stops } from './story';
import { Strips } from './strips';
import { SLIM, together } from './summary';

export type Level = 'machine' | 'block' | 'head' | 'matrix' | 'cell';
export const LEVELS: Level[] = ['machine', 'block', 'head', 'matrix', 'cell'];

/** So many tokens have their vectors at hand; of the others of a longer text their lengths are known. */
export const COLUMNS = 128;
/** So many lines a head's table has at most. */
const LINES = 64;
export interface Window {
  first: number;
  count: number;
}
/** As many tokens around a position as there may be; it moves in steps, so that what was fetched serves for a while. */
export const around = (tokens: number, at: number, most = COLUMNS): Window => ({ first: Math.max(0, Math.min(tokens - most, Math.floor((4 * at) / most) * (most / 4) - most / 2)), count: Math.min(tokens, most) });
/** How many tokens are asked for that each of so many attends to most. */
export const mostOf = (tokens: number): number => (tokens > 24 ? 4 : 6);
export const CELLS = 24;
/** Cells in a block that is looked into. */
export const FINE = 48;

export interface Full {
  name: string;
  values: Float32Array | number[];
  most: number;
}

export interface Choice {
  words: Token[];
  shares: number[];
}

/** Attention that is drawn: how much token `q` takes from token `k`, over all heads of a layer. */
export interface Arc {
  look: number;
  q: number;
  k: number;
  weight: number;
  /** It is the strongest line of so many neighbouring tokens. */
  span: number;
}

export class Scene {
  readonly camera = new Camera();
  world: Layout;
  line: Stand[];
  times: Float32Array;
  tokens: Token[] = [];
  /** Columns: as many as there are tokens. */
  count = 0;
  /** The chosen token; the head. */
  column = 0;
  head = 0;
  heads = 1;
  /** Where the story stands: a stop and the part of the way to it, 3.4 is four tenths of the way from stop 3 to 4. */
  time = 0;
  playing = false;
  /** Whether only the chosen token is computed, and the others are kept from before. */
  alone = false;
  /** Where one can look into the future the mask closes nothing. */
  masked = true;
  /** Whether a recurrent network reads in both directions: then the second half of each vector was read from the end. */
  both = false;
  /** Whether the story is here; whether anything is made yet; and how much is seen of the word of a column that is still to come. */
  active = true;
  begun = true;
  hint = 0.35;
  /** So many tokens a recurrent network has read, if it is still reading. */
  heard = Infinity;

  /** How long every token's vectors are, in the river and around it, and where neurons fire. */
  stages: Strips | null = null;
  neurons: Strips | null = null;
  /** The vectors themselves, of those tokens that have them at hand: of a short text the same. */
  vectors: Strips | null = null;
  firing: Strips | null = null;
  block: { layer: number; strips: Strips } | null = null;
  /** What each token attends to most: so many positions, then their weights. */
  looks: Float32Array | null = null;
  arcs: Arc[] = [];
  /** The same of the chosen token head by head, where heads are shown apart. */
  byHead: { heads: number; arcs: { look: number; head: number; k: number; weight: number }[] } | null = null;
  /** The two places that one matrix makes: looked up in it, and scored with it; and its picture. */
  tied: [string, string] | null = null;
  tiedPicture: HTMLCanvasElement | null = null;
  dark = false;
  rows: { layer: number; position: number; names: string[]; heads: number; values: Float32Array } | null = null;
  table: { name: string; head: number; size: number; values: Float32Array } | null = null;
  /** What the chosen token takes from those of another text: of each table a line for each head. */
  across: { names: string[]; heads: number; keys: number; values: Float32Array } | null = null;
  matrix: { step: number; layer: number; rows: number; columns: number; values: number[][]; most: number; shape: number[] } | null = null;
  full: Full | null = null;
  /** The neurons of the chosen token before and after their activation, from the smallest before. */
  bent: { layer: number; x: Float32Array; y: Float32Array } | null = null;
  /** From a first token on. */
  expected: (Choice & { first: number }) | null = null;
  choice: Choice | null = null;
  /** The number whose making is shown: of which place, which column of it. */
  spot: { name: string; column: number } | null = null;
  /** What the pointer is over. */
  over: { column: number; station: Station | null } | null = null;

  width = 0;
  height = 0;

  constructor(readonly map: ModelMap) {
    this.world = layout(map);
    const scored = map.places.find((one) => one.operation === 'linear' && one.name === 'logits' && one.module);
    const read = scored && map.places.find((one) => one.operation === 'look up' && one.module === scored.module);
    this.tied = read ? [read.name, scored.name] : null;
    this.line = stops(map);
    this.times = pace(map, this.line);
  }

  get slots(): number {
    return this.count + 1;
  }
  get stop(): number {
    return Math.max(0, Math.min(this.line.length - 1, Math.ceil(this.time - 1e-6)));
  }
  /** How far on the way to the stop; 1: there. */
  get way(): number {
    return this.time >= this.stop ? 1 : this.time - (this.stop - 1);
  }
  station(stop: number): Station | null {
    const at = this.line[stop];
    if (!at) return null;
    const block = this.map.steps[at.step]!.block;
    return this.world.stations.find((one) => one.step === at.step && (!block || one.layer === at.layer)) ?? null;
  }
  /** The height up to which all has been made. */
  get tide(): number {
    if (this.stop === 0) return this.world.high + 1;
    const to = this.station(this.stop);
    const from = this.station(this.stop - 1);
    const top = to ? to.y + to.h : 0;
    const before = from ? from.y + from.h : 0;
    return before + (top - before) * this.way;
  }

  /** How much of a block's steps can be seen: 0 from far away, 1 when they stand apart. */
  get near(): number {
    return ramp(BLOCK * this.camera.sy, 170, 280) * ramp(this.camera.sx, 7, 12);
  }
  /** How much the columns are summarised: 1 where a token is too narrow for a river of its own. */
  get slim(): number {
    return 1 - ramp(this.camera.sx, ...SLIM);
  }
  /** The columns in sight: from the first to before the second. */
  get low(): number {
    return Math.max(0, Math.floor(this.camera.atX(0)) - 1);
  }
  get high(): number {
    return Math.min(this.count, Math.ceil(this.camera.atX(this.width)) + 1);
  }
  /** How strongly a line is drawn: from far away only the strongest of neighbouring tokens, and always those of the one that is shown. */
  strength(arc: Arc, shown: number): number {
    return arc.q === shown ? 1 : ramp(arc.span * this.camera.sx, 5, 9);
  }
  /** The token whose lines stand out: the one pointed at, or the chosen. */
  get shown(): number {
    return this.over && this.over.column >= 0 ? this.over.column : this.column;
  }
  /** What is expected after a token, where it is known. */
  next(i: number): { word: Token; share: number } | null {
    const at = i - (this.expected?.first ?? 0);
    const word = this.expected?.words[at];
    return word ? { word, share: this.expected!.shares[at]! } : null;
  }
  /** The word that is chosen, and the column to which it goes round; null where it does not. */
  get comes(): { word: Token; to: number } | null {
    const word = this.choice?.words[0];
    const follows = thing(this.map, 'logits')?.kind !== 'gap'; // a word that fits into a gap does not go on from here
    return word && follows && this.column === this.count - 1 ? { word, to: this.count } : null;
  }
  /** The lines of a head's table: of a long text those around the chosen token. */
  get lines(): Window {
    return around(this.count, this.column, LINES);
  }
  /** The middle of a column's vectors; from near the river runs to the right of them. */
  middle(i: number): number {
    return i + 0.5 - 0.05 * this.near;
  }

  narrow(): boolean {
    return this.width < 560;
  }
  margin(level: Level): Margin {
    const left = this.narrow() ? 84 : 142;
    const leaning = this.camera.sx < 46;
    return level === 'machine' ? { left, right: this.narrow() ? 22 : this.tied ? 78 : 34, top: 10, bottom: leaning ? 62 : 34 } : { left, right: 16, top: 16, bottom: leaning ? 62 : 36 };
  }

  /** What a level looks at. */
  box(level: Level, station: Station | null): Box {
    const all = { x: 0, y: 0, w: this.slots, h: this.world.high };
    if (level === 'machine' || !station) return all;
    const floor = this.world.floors.find((one) => one.stations.includes(station))!;
    const seen = Math.min(this.slots, this.narrow() ? 5 : 9);
    const x = Math.max(0, Math.min(this.slots - seen, this.column + 2 - seen));
    if (level === 'block') return { x, y: floor.y - 0.02, w: seen, h: floor.h + 0.04 };
    const name = station.places[0] ?? '';
    if (thing(this.map, name)?.axes.at(-1) === 'key') {
      const { y, h } = this.headRow(station, this.head);
      return { x: Math.max(0, this.column + 1 - 12), y: y - h * 0.08, w: Math.min(12, this.slots), h: h * 1.16 };
    }
    if (level === 'matrix') return { ...this.tile(station), w: 1.3 };
    const focus = this.spot && station.places.includes(this.spot.name) ? this.spot.name : name;
    const half = halfOf(this.map, focus);
    const centre = this.column + 0.45;
    const { from, to } = lane(station, focus);
    const [low, tall] = [station.y + station.h * from, station.h * (to - from)];
    if (level === 'head') return { x: centre - half - 0.02, y: station.y - station.h * 0.15, w: 2 * half + 0.04, h: station.h * 1.3 };
    const size = this.full?.values.length ?? FINE;
    const wide = (2 * half) / size;
    const at = centre - half + wide * Math.max(6, Math.min(size - 6, (this.spot?.column ?? 0) + 0.5));
    return { x: at - 6 * wide, y: low - tall * 0.1, w: 12 * wide, h: tall * 1.2 };
  }

  /** Where a head's row of a table stands. */
  headRow(station: Station, head: number): { y: number; h: number } {
    const room = station.h * 0.86;
    const h = room / this.heads;
    return { y: station.y + station.h * 0.93 - (head + 1) * h, h };
  }
  /** The table of a head that is near enough to be read, and where its lines are. */
  opened(): { station: Station; y: number; h: number } | null {
    if (!this.table) return null;
    const station = stationOf(this.world, this.table.name);
    if (!station) return null;
    const { y, h } = this.headRow(station, this.table.head);
    return h * this.camera.sy > 70 ? { station, y, h } : null;
  }
  /** Where the matrix of a step hangs: left of the first column in sight. */
  tile(station: Station): Box {
    return { x: this.column + 1.04, y: station.y + station.h * 0.04, w: 0.8, h: station.h * 0.92 };
  }

  /** Takes over what tokens attend to, and chooses what of it is drawn. */
  setLooks(values: Float32Array | null): void {
    this.looks = values;
    this.arcs = [];
    const n = this.count;
    if (!values || values.length !== this.world.looks.length * n * 2 * this.most) return;
    const many = n > 24;
    this.world.looks.forEach((_, look) => {
      let lines: Arc[] = [];
      for (let q = 0; q < n; q++) {
        const found: Arc[] = [];
        for (let nth = 0; nth < this.most; nth++) {
          const { k, weight } = this.strongest(look, q, nth)!;
          if (k >= 0 && k !== q && weight >= (many ? 0.04 : 0.05) && found.length < (many ? 3 : 5)) found.push({ look, q, k, weight, span: found.length ? 0.5 : 1 });
        }
        this.arcs.push(...found);
        lines.push(...found.slice(0, 1));
      }
      for (let span = 2; lines.length > 1; span *= 2) {
        const best = new Map<number, Arc>();
        for (const line of lines) {
          const bin = Math.floor(line.q / span);
          if (line.weight > (best.get(bin)?.weight ?? 0)) best.set(bin, line);
        }
        lines = [...best.values()];
        for (const line of lines) line.span = span;
      }
    });
  }
  get most(): number {
    return mostOf(this.count);
  }
  /** What a token attends to most, second most, ... over all heads. */
  strongest(look: number, q: number, nth = 0): { k: number; weight: number } | null {
    const at = (look * this.count + q) * 2 * this.most + nth;
    const [k, weight] = [this.looks?.[at], this.looks?.[at + this.most]];
    return k === undefined || weight === undefined ? null : { k, weight };
  }
  /** How much of its attention a token gives to another, if that is among the strongest. */
  look(look: number, q: number, k: number): number {
    for (let nth = 0; nth < this.most; nth++) {
      const found = this.strongest(look, q, nth);
      if (found?.k === k) return found.weight;
    }
    return 0;
  }

  /** Everything drawn, in reading order and in plain numbers: for tests, and for the list that is read aloud. */
  describe(): Described {
    const { stages, line, map } = this;
    const at = line[this.stop]!;
    return {
      level: this.level,
      stop: { n: this.stop, name: address(map, at), step: map.steps[at.step]!.name, layer: at.layer },
      columns: this.tokens.map(({ id }, position) => ({ position, id, expected: this.next(position)?.word.id ?? null, share: this.next(position)?.share ?? null })),
      together: this.slim > 0 ? together(this.camera.sx) : 1,
      vectors: this.vectors ? { first: this.vectors.first, count: this.vectors.count } : null,
      floors: this.world.floors.map((floor) => ({ kind: floor.kind, layer: floor.layer, rows: floor.stations.map((one) => map.steps[one.step]!.name) })),
      river: stages ? stages.names.flatMap((name, n) => Array.from({ length: this.count }, (_, position) => ({ name, position, length: stages.length(n, position) }))) : [],
      arcs: this.arcs.filter((arc) => this.near < 1 && this.strength(arc, this.shown) > 0).map(({ look, q, k, weight }) => ({ name: this.world.looks[look]!.name, from: k, to: q, weight })),
      heads: this.byHead ? this.byHead.arcs.map(({ look, head, k, weight }) => ({ name: this.world.looks[look]!.name, head, from: k, to: this.column, weight })) : [],
      tied: this.tied,
      choice: this.choice ? this.choice.words.map((word, i) => ({ id: word.id, share: this.choice!.shares[i]! })) : [],
      stops: this.stops(),
    };
  }
  /** Every stop in order, with what can be said of it in numbers. */
  stops(): Described['stops'] {
    const { line, map } = this;
    return line.map((one, n) => ({ n, name: address(map, one), title: title(map.steps[one.step]!), layer: map.steps[one.step]!.block ? one.layer : null, numbers: this.#numbers(one) }));
  }
  /** What can be said in numbers of a stop, of the chosen token. */
  #numbers(stand: Stand): { name: string; length: number }[] {
    return this.map.steps[stand.step]!.places.map((place) => place.replace('*', String(stand.layer))).flatMap((name) => {
      for (const strips of [this.spoken, this.stages, this.neurons, this.block?.strips ?? null]) {
        const n = strips?.index(name) ?? -1;
        if (strips?.has(this.column) && n >= 0) return [{ name, length: strips.length(n, this.column) }];
      }
      return [];
    });
  }
  /** Lengths at the chosen token alone, of every place: fetched for the list. */
  spoken: Strips | null = null;
  level: Level = 'machine';

  laneOf(name: string): { station: Station; from: number; to: number } | null {
    const station = stationOf(this.world, name);
    return station ? { station, ...lane(station, name) } : null;
  }
}

export interface Described {
  level: Level;
  stop: { n: number; name: string; step: string; layer: number };
  columns: { position: number; id: number; expected: number | null; share: number | null }[];
  floors: { kind: string; layer: number; rows: string[] }[];
  river: { name: string; position: number; length: number }[];
  /** So many neighbouring tokens share a column of pixels, in which the longest is drawn. */
  together: number;
  /** The tokens whose vectors are drawn; of the others how long they are. */
  vectors: Window | null;
  /** The lines that are drawn: from far away the strongest of neighbouring tokens. */
  arcs: { name: string; from: number; to: number; weight: number }[];
  /** Of the chosen token, head by head, where they are shown apart. */
  heads: { name: string; head: number; from: number; to: number; weight: number }[];
  /** The two places that the one matrix of the tokens makes. */
  tied: [string, string] | null;
  choice: { id: number; share: number }[];
  stops: { n: number; name: string; title: string; layer: number | null; numbers: { name: string; length: number }[] }[];
}
