/** One of the two stacks as the living view draws a model: its own map, its own scene. */

import type { Stack } from '../../../lib/views';
import type { Token } from '../../../lib/token';
import { thing, type ModelMap } from '../../../state/map';
import { isAcross, isTable } from '../../walk/living/layout';
import type { Margin } from '../../walk/living/camera';
import { Scene, type Level } from '../../walk/living/scene';

export type Side = 'encoder' | 'decoder';

/** The map of a stack, without what belongs to the tokens of the other text, or to no token. */
export function stackMap(whole: ModelMap, { layers, steps, places }: Stack): ModelMap {
  const { kind, title, views } = whole;
  const every = { kind, title, layers, places, views, stacks: [], steps: [] };
  const own = (name: string): boolean => {
    const place = thing(every, name);
    return !place || (place.axes.includes('token') && (isTable(every, name) || !isAcross(every, name)));
  };
  const kept = steps.map((step) => ({ ...step, places: (step.places ?? []).filter(own) })).filter((step, n) => step.places.length || !steps[n]!.places?.length);
  return { ...every, steps: kept as ModelMap['steps'] };
}

/** What the whole model calls a place of a stack. */
export const fullName = (side: Side, name: string): string => (name === 'logits' ? name : `${side}.${name}`);

export class StackScene extends Scene {
  /** What was written after the chosen token, and whether more comes. */
  written: Token | null = null;
  /** Pixels above the machine, for what leads over to the other stack. */
  above = 0;

  constructor(
    map: ModelMap,
    readonly side: Side,
  ) {
    super(map);
    this.hint = 0.14;
    this.tied = null; // the matrix belongs to both stacks
  }
  override get slots(): number {
    return this.count + (this.side === 'decoder' ? 1 : 0);
  }
  override narrow(): boolean {
    return true; // half of the page
  }
  override margin(level: Level): Margin {
    const margin = super.margin(level);
    return { ...margin, left: this.width > 420 ? 108 : margin.left, top: margin.top + (level === 'machine' ? this.above : 0) };
  }
  /** A floor of one step has nothing that could stand apart. */
  override get near(): number {
    return this.world.floors.some((one) => one.kind === 'block' && one.stations.length > 1) ? super.near : 0;
  }
  override get comes(): { word: Token; to: number } | null {
    return this.written && this.column < this.count ? { word: this.written, to: this.column + 1 } : null;
  }
  /** Where a place stands on the screen: the middle of its row. */
  heightOf(name: string): number {
    const station = this.world.stations.find((one) => one.places.includes(name));
    return station ? this.camera.y(station.y + station.h / 2) : 0;
  }
}
