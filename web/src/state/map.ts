/** A model's map, as GET /api/models/map says it: the steps of the walk, and every place once. */

import type { Shown, StepSpec, Thing } from '../lib/views';

export type Step = Required<StepSpec>;
export type ModelMap = Omit<Shown, 'steps'> & { steps: Step[] };
export type { Thing };

/** The name of a place in every block. */
export const pattern = (name: string): string => name.replace(/^blocks\.\d+\./, 'blocks.*.');

export const thing = (map: ModelMap, name: string): Thing | undefined => map.places.find((one) => one.name === pattern(name));

/** Whether all of these views fit the model. */
export const has = (map: ModelMap, views: string[] = []): boolean => views.every((name) => map.views.includes(name));
