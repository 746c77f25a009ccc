/** The picture in the order it is painted: what stays between two stops, what moves, and the names over both. */

import { ending, guesses, loop, names, words } from './ends';
import type { Ink } from './ink';
import { arcs, floors, headArcs, recurrences, rivers, swellings, tied, unread } from './machine';
import { rows } from './rows';
import type { Scene } from './scene';
import { travel } from './travel';
import { wires } from './wires';

export function drawStill(scene: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  const far = 1 - scene.near;
  floors(scene, pen, ink);
  tied(scene, pen, ink, far);
  rivers(scene, pen, ink);
  recurrences(scene, pen, ink);
  arcs(scene, pen, ink, far);
  headArcs(scene, pen, far, scene.dark);
  swellings(scene, pen, ink, far);
  wires(scene, pen, ink, scene.near);
  rows(scene, pen, ink);
  unread(scene, pen, ink);
  guesses(scene, pen, ink);
}

export function drawFront(scene: Scene, pen: CanvasRenderingContext2D, ink: Ink): void {
  names(scene, pen, ink);
  words(scene, pen, ink);
}

/** What moves; `front` paints the names, which stand over all of it but the chosen word. `ghost`: how much is seen of what is not made yet. */
export function drawMoving(scene: Scene, pen: CanvasRenderingContext2D, ink: Ink, ghost: number, front: () => void): void {
  const top = scene.world.stations.find((one) => one.operation === 'choose');
  const made = !top || scene.tide >= top.y;
  const chosen = scene.station(scene.stop)?.operation === 'choose';
  pen.globalAlpha = made ? 1 : ghost;
  ending(scene, pen, ink);
  pen.globalAlpha = 1;
  if (!chosen) travel(scene, pen, ink, scene.near < 0.5);
  front();
  pen.globalAlpha = made ? 1 : ghost;
  loop(scene, pen, ink);
  pen.globalAlpha = 1;
  if (chosen) travel(scene, pen, ink, false);
}
