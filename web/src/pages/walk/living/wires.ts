/** From near: what flows where. Each step is tied to what it is made of; the parts of a block draw from the river and add to it. */

import { thing } from '../../../state/map';
import { inkOf, type Ink } from './ink';
import { inputs, isTable } from './layout';
import { course } from './machine';
import { half, strip } from './rows';
import type { Scene } from './scene';

const a = new Float64Array(2);
const b = new Float64Array(2);

export function wires(s: Scene, pen: CanvasRenderingContext2D, ink: Ink, near: number): void {
  if (near <= 0) return;
  const before = pen.globalAlpha;
  for (const station of s.world.stations) {
    if (station.operation === 'show' || s.camera.y(station.y) < -200 || s.camera.y(station.y + station.h) > s.height + 200) continue;
    for (const name of station.places) {
      if (isTable(s.map, name)) continue;
      for (const source of inputs(s.map, name)) {
        const from = s.laneOf(source);
        if (!from || from.station === station || isTable(s.map, source)) continue;
        const river = s.world.stages.some((one) => one.name === source);
        strip(s, from.station, source, a);
        strip(s, station, name, b);
        pen.strokeStyle = ink[river ? 'residual' : inkOf(thing(s.map, source)?.kind ?? '')];
        for (let i = s.low; i < s.high; i++) {
          const x = s.camera.x(s.middle(i));
          const own = i === s.column;
          pen.globalAlpha = before * near * (own ? 0.85 : 0.22);
          pen.lineWidth = own ? 2 : 1;
          pen.beginPath();
          if (river && station.operation !== 'add') {
            // Out of the river, into the step.
            const edge = x + half(s, name) * s.camera.sx;
            pen.moveTo(course(s, i), b[0]! + b[1]! + 10);
            pen.quadraticCurveTo(course(s, i), b[0]! + b[1]! / 2, edge, b[0]! + b[1]! / 2);
          } else if (river) continue;
          else if (station.operation === 'add') {
            // What was found goes back into it.
            pen.moveTo(x, a[0]!);
            pen.lineTo(x, b[0]! + b[1]!);
            pen.moveTo(x + half(s, name) * s.camera.sx, b[0]! + b[1]! / 2);
            pen.quadraticCurveTo(course(s, i), b[0]! + b[1]! / 2, course(s, i), b[0]! - 8);
          } else {
            pen.moveTo(x, a[0]!);
            pen.lineTo(x, b[0]! + b[1]!);
          }
          pen.stroke();
        }
      }
    }
  }
  pen.globalAlpha = before;
}
