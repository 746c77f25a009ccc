/** What lies under a point of the screen, and where on it a thing stands. */

import { isHeads, isTable, lane, type Station } from './layout';
import { half } from './rows';
import type { Scene } from './scene';

export interface Hit {
  column: number;
  station: Station | null;
  /** A place, and which of its numbers, where single numbers can be told apart. */
  name: string;
  cell: number;
  value: number | null;
  /** Of a table: the token that looks. */
  row: number | null;
  head: number;
  matrix: boolean;
}

/** Where the story makes what stands in a row. */
export function stopOf(scene: Scene, station: Station): number {
  return Math.max(0, scene.line.findIndex((one) => one.step === station.step && (station.layer < 0 || one.layer === station.layer)));
}

/** What lies under a point of the screen. */
export function hit(scene: Scene, px: number, py: number): Hit {
  const { camera } = scene;
  const [x, y] = [camera.atX(px), camera.atY(py)];
  const hit: Hit = { column: -1, station: null, name: '', cell: -1, value: null, row: null, head: -1, matrix: false };
  const column = Math.floor(x);
  if (column >= 0 && column < scene.count) hit.column = column;
  const floor = scene.world.floors.find((one) => y >= one.y && y < one.y + one.h);
  const station = floor?.stations.find((one) => y >= one.y && y < one.y + one.h) ?? null;
  hit.station = station;
  if (!station) return hit;
  const part = (y - station.y) / station.h;
  const name = station.places.find((one) => part >= lane(station, one).from && part < lane(station, one).to) ?? '';
  hit.name = name;
  if (scene.matrix?.step === station.step) {
    const tile = scene.tile(station);
    hit.matrix = x >= tile.x && x <= tile.x + tile.w && y >= tile.y && y <= tile.y + tile.h;
    if (hit.matrix) return hit;
  }
  if (!name || hit.column < 0) return hit;
  if (isTable(scene.map, name)) {
    for (let head = 0; head < scene.heads; head++) {
      const lane = scene.headRow(station, head);
      if (y < lane.y || y >= lane.y + lane.h || lane.h * camera.sy < 5) continue;
      hit.head = head;
      if (scene.table?.name === name && scene.table.head === head && lane.h * camera.sy > 70) {
        const { first, count } = scene.lines;
        hit.row = first + Math.floor(((lane.y + lane.h - y) / lane.h) * count);
        hit.cell = hit.column;
        hit.value = scene.table.values[hit.row * scene.table.size + hit.column] ?? null;
      }
    }
    return hit;
  }
  const wide = half(scene, name);
  const along = (x - (scene.middle(hit.column) - wide)) / (2 * wide);
  if (hit.column === scene.column && scene.full?.name === name && along >= 0 && along < 1 && (2 * wide * camera.sx) / scene.full.values.length >= 2) {
    hit.cell = Math.floor(along * scene.full.values.length);
    hit.value = scene.full.values[hit.cell] ?? null;
    if (isHeads(scene.map, name)) hit.head = Math.floor((hit.cell * scene.heads) / scene.full.values.length);
  }
  return hit;
}

/** Where the chosen token's part of a row stands on the screen; of a number in it, that number. */
export function where(scene: Scene, step: string, layer: number, cell: number): { x: number; y: number } | null {
  const station = scene.world.stations.find((one) => scene.map.steps[one.step]!.name === step && (one.layer < 0 || one.layer === layer));
  if (!station) return null;
  const name = station.places[0] ?? '';
  const lines = isTable(scene.map, name) ? scene.headRow(station, scene.head) : null;
  const { from, to } = lane(station, name);
  const y = lines ? lines.y + lines.h / 2 : station.y + (station.h * (from + to)) / 2;
  const along = cell >= 0 && scene.full ? 2 * half(scene, name) * ((cell + 0.5) / scene.full.values.length - 0.5) : 0;
  return { x: scene.camera.x(scene.middle(scene.column) + along), y: scene.camera.y(y) };
}
