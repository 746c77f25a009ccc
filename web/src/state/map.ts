/** A model's map, as GET /api/models/map says it: the steps of the walk, and every place once. */

export interface Step {
  name: string;
  /** What makes its places: an operation of the map; or stack, token, show, rank, choose. */
  operation: string;
  /** text (before the stack), a part of a block (attention, mlp), or end (after it). */
  group: string;
  /** In a block they are patterns: blocks.*.attention.norm */
  places: string[];
  /** Every block takes it. */
  block: boolean;
  /** The catalogues may have words for it; else it has its place's name. */
  named: boolean;
}

export interface Thing {
  name: string;
  axes: string[];
  operation: string;
  inputs: string[];
  kind: string;
}

export interface ModelMap {
  kind: string;
  title: string;
  layers: number;
  steps: Step[];
  places: Thing[];
  /** The views that fit it. */
  views: string[];
}

/** The name of a place in every block. */
export const pattern = (name: string): string => name.replace(/^blocks\.\d+\./, 'blocks.*.');

export const thing = (map: ModelMap, name: string): Thing | undefined => map.places.find((one) => one.name === pattern(name));

/** Whether all of these views fit the model. */
export const has = (map: ModelMap, views: string[] = []): boolean => views.every((name) => map.views.includes(name));
