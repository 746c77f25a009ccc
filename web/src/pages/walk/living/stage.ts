/** Where the scene is played: the clock, the camera's ways, painting only what changed. */

import type { Part, Pieces } from './drawing';
import { edges } from './ends';
import { hit, where, type Hit } from './hit';
import type { Ink } from './ink';
import { BLOCK, type Station } from './layout';
import { drawFront, drawMoving, drawStill } from './painting';
import { COLUMNS, type Level, type Scene } from './scene';
import { type Pictures, SvgPen } from './svgpen';

const GLIDE = 0.75; // seconds from one stop to the next when a hand steps
const GHOST = 0.22; // how much is seen of what is not made yet, while it is being made
const DARK = 0.08; // of what comes later
const WAITS = 0.5; // and while nothing moves
const REPAINTS = 3; // frames in which a picture that is slow to paint is painted once while the camera moves; between, the last one is stretched
const SLOW = 5; // milliseconds that are slow
const WIDEST = 128; // pixels that a column has at most while the whole machine is seen

export class Stage {
  onstop: (stop: number) => void = () => undefined;
  onend: () => void = () => undefined;
  /** Said after every picture, for what is drawn over it. */
  onpaint: () => void = () => undefined;
  /** Said when the camera rests: the token in the middle, if so few are in sight that their vectors are drawn. */
  onsight: (middle: number | null) => void = () => undefined;
  #canvas: HTMLCanvasElement | null = null;
  #pen: CanvasRenderingContext2D | null = null;
  /** All that does not move between two stops, on paper: what is opaque is copied, not blended. */
  #still = document.createElement('canvas');
  #stillPen = this.#still.getContext('2d', { alpha: false })!;
  /** Where the camera was when it was painted, how long that took, and how many frames ago. */
  #from = { sx: 1, sy: 1, ox: 0, oy: 0 };
  #took = 0;
  #paints = 0;
  #old = 0;
  /** Names and words, over all that moves. */
  #front = document.createElement('canvas');
  #frontPen = this.#front.getContext('2d')!;
  #frontStop = -1;
  #ink: Ink | null = null;
  #dirty = true;
  #frame = 0;
  #last = 0;
  #playing = false;
  #target = 0;
  #told = 0;
  #dense = 1;
  #ghost = WAITS;
  #placed = false;
  #free = false;
  #level: Level = 'machine';
  #there = '';
  #times = new Float32Array(512);
  #count = 0;

  constructor(
    readonly scene: Scene,
    readonly calm: () => boolean,
  ) {}

  attach(canvas: HTMLCanvasElement, width: number, height: number, ink: Ink): void {
    const { scene } = this;
    this.#dense = Math.min(2, devicePixelRatio || 1);
    const [w, h] = [Math.round(width * this.#dense), Math.round(height * this.#dense)];
    if (this.#canvas !== canvas || canvas.width !== w || canvas.height !== h) {
      canvas.width = this.#still.width = this.#front.width = w;
      canvas.height = this.#still.height = this.#front.height = h;
      this.#placed = false;
    }
    this.#canvas = canvas;
    this.#pen = canvas.getContext('2d', { alpha: false });
    this.#ink = ink;
    scene.width = width;
    scene.height = height;
    scene.camera.size(width, height);
    this.dirty();
  }

  /** Go to a level; the first time, and for those who ask for no motion, at once. */
  look(level: Level, station: Station | null): void {
    const { scene } = this;
    this.#level = level;
    const free = this.#free;
    this.#free = false;
    const at_once = !this.#placed || this.calm();
    this.#placed = true;
    const box = scene.box(level, station);
    const there = `${box.x} ${box.y} ${box.w} ${box.h} ${scene.width} ${scene.height}`;
    if (there === this.#there && !free && !at_once) return;
    this.#there = there;
    const most = level === 'machine' ? WIDEST : Infinity;
    // How the words lean depends on the scale, and the margin on that: look twice.
    for (let twice = 0; twice < 2 && at_once; twice++) scene.camera.show(box, scene.margin(level), most, true);
    if (!at_once) scene.camera.show(box, scene.margin(level), most, false);
    this.dirty();
  }

  zoomed(): boolean {
    return this.#free || this.#level !== 'machine';
  }
  zoom(factor: number, x: number, y: number): void {
    const { camera } = this.scene;
    const block = BLOCK * camera.sy;
    this.#free = true;
    const { high } = this.scene.world;
    // Up to a block the floors grow faster than the columns, unless there are many of these: some twenty are left when its steps have unfolded.
    const less = Math.max(0.45, Math.log(this.scene.slots / (this.scene.narrow() ? 9 : 20)) / Math.log(high / BLOCK));
    camera.zoom(factor, block < this.scene.height * 0.9 ? Math.pow(factor, less) : factor, x, y);
    if (factor < 1 && high * camera.sy < this.scene.height * 0.9) {
      this.look('machine', null);
      this.#free = false;
    }
    this.dirty();
  }
  pan(dx: number, dy: number): void {
    this.#free = true;
    this.scene.camera.pan(dx, dy);
    this.dirty();
  }

  /** Be at a stop: the next one is travelled to, a distant one is there at once. */
  go(stop: number): void {
    this.#target = stop;
    const { scene } = this;
    if (this.#playing && Math.abs(stop - scene.stop) <= 1) return;
    if (this.calm() || stop !== Math.round(scene.time) + 1 || scene.time === 0) scene.time = stop;
    this.#told = stop;
    this.dirty();
  }
  play(on: boolean): void {
    if (on === this.#playing) return;
    this.#playing = on;
    if (on) {
      if (this.scene.time >= this.scene.line.length - 1) this.scene.time = 0;
      this.#told = this.scene.stop;
      this.#waited = 0;
    } else this.#target = this.scene.stop;
    this.#last = 0;
    this.dirty();
  }
  #waited = 0;
  /** Whether it is only the camera that has asked for a new picture. */
  #moved = false;

  rest(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#playing = false;
  }
  dirty(): void {
    this.#dirty = true;
    this.#moved = false;
    if (!this.#frame && this.#pen) this.#frame = requestAnimationFrame(this.#tick);
  }

  /** Now, not with the next frame. */
  paint(): void {
    cancelAnimationFrame(this.#frame);
    this.#tick(performance.now());
  }
  #tick = (now: number): void => {
    this.#frame = 0;
    const seconds = this.#last ? Math.min(0.1, (now - this.#last) / 1000) : 0;
    const started = performance.now();
    this.#advance(seconds);
    const { camera } = this.scene;
    const changed = this.#dirty && !this.#moved;
    this.#moved = camera.moving;
    if (camera.moving) {
      camera.step(seconds);
      this.#dirty = true;
    }
    const due = this.#dirty || (this.#frontStop !== this.scene.stop && this.scene.near > 0);
    const stretched = due && camera.moving && !changed && this.#took > SLOW && ++this.#old < REPAINTS;
    if (due && !stretched) this.#paintStill();
    if (this.#dirty || this.#frontStop !== this.scene.stop) this.#paintFront();
    this.#dirty = camera.moving;
    this.#compose();
    this.onpaint();
    if (due && !stretched) this.#took = performance.now() - started;
    if (this.#last && this.#going()) this.#times[this.#count++ % 512] = performance.now() - started;
    this.#last = now;
    if (!camera.moving) {
      const { low, high } = this.scene;
      this.onsight(high - low <= COLUMNS / 2 ? Math.round((low + high) / 2) : null);
    }
    if (this.#going()) this.#frame = requestAnimationFrame(this.#tick);
    else this.#last = 0;
  };
  #going(): boolean {
    return this.#playing || this.scene.camera.moving || this.scene.time < this.#target;
  }

  #advance(seconds: number): void {
    const { scene } = this;
    if (this.#playing) {
      const end = scene.line.length - 1;
      if (this.calm()) {
        this.#waited += seconds;
        const next = Math.min(end, scene.stop + 1);
        if (this.#waited >= (scene.times[next] ?? 1)) {
          this.#waited = 0;
          scene.time = next;
        }
      } else {
        const next = Math.min(end, Math.floor(scene.time + 1e-6) + 1);
        scene.time = Math.min(end, scene.time + seconds / (scene.times[next] || 1));
      }
      if (scene.stop !== this.#told) {
        this.#told = scene.stop;
        this.#target = scene.stop;
        this.onstop(scene.stop);
      }
      if (scene.time >= end) {
        this.#playing = false;
        this.onend();
      }
    } else if (scene.time < this.#target) scene.time = Math.min(this.#target, scene.time + seconds / GLIDE);
  }

  #paintStill(): void {
    this.#paints++;
    const pen = this.#stillPen;
    const { sx, sy, ox, oy } = this.scene.camera;
    Object.assign(this.#from, { sx, sy, ox, oy });
    this.#old = 0;
    pen.setTransform(this.#dense, 0, 0, this.#dense, 0, 0);
    pen.globalAlpha = 1;
    pen.fillStyle = this.#ink!.paper;
    pen.fillRect(0, 0, this.scene.width, this.scene.height);
    if (this.scene.count) drawStill(this.scene, pen, this.#ink!);
  }
  #paintFront(): void {
    this.#paints++;
    this.#frontStop = this.scene.stop;
    const pen = this.#frontPen;
    pen.setTransform(this.#dense, 0, 0, this.#dense, 0, 0);
    pen.clearRect(0, 0, this.scene.width, this.scene.height);
    pen.globalAlpha = 1;
    if (this.scene.count) drawFront(this.scene, pen, this.#ink!);
  }

  #compose(): void {
    const { scene } = this;
    const [pen, ink] = [this.#pen!, this.#ink!];
    const still = this.#still;
    const d = this.#dense;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.globalAlpha = 1;
    pen.fillStyle = ink.paper; // not left open: a clip has no page behind it
    pen.fillRect(0, 0, still.width, still.height);
    if (!scene.count) return;
    this.#ghost += ((this.#playing ? GHOST : WAITS) - this.#ghost) * (this.calm() ? 1 : 0.12);
    const { ghost, parts } = this.#seen();
    for (const part of parts) {
      const [x0, x1, y0, y1] = [part.x0, part.x1, part.y0, part.y1].map((one) => Math.round(one * d)) as [number, number, number, number];
      if (x1 <= x0 || y1 <= y0) continue;
      pen.globalAlpha = part.alpha;
      this.#copy(pen, x0, y0, x1 - x0, y1 - y0);
    }
    pen.setTransform(d, 0, 0, d, 0, 0);
    pen.globalAlpha = 1;
    drawMoving(scene, pen, ink, ghost, () => {
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.globalAlpha = 1;
      const { left, foot } = edges(scene);
      const [x, y] = [Math.round(left * d), Math.round(Math.max(0, foot) * d)];
      pen.drawImage(this.#front, 0, 0, x, still.height, 0, 0, x, still.height);
      if (y < still.height) pen.drawImage(this.#front, x, y, still.width - x, still.height - y, x, y, still.width - x, still.height - y);
      pen.setTransform(d, 0, 0, d, 0, 0);
    });
  }
  /** A part of the still picture; where the camera has gone on since it was painted, stretched to where its things are now. */
  #copy(pen: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
    const { sx, sy, ox, oy } = this.scene.camera;
    const from = this.#from;
    const d = this.#dense;
    if (!this.#old) return pen.drawImage(this.#still, x, y, w, h, x, y, w, h);
    const [kx, ky] = [sx / from.sx, sy / from.sy];
    pen.save();
    pen.beginPath();
    pen.rect(x, y, w, h);
    pen.clip();
    pen.drawImage(this.#still, (ox - from.ox * kx) * d, (oy - from.oy * ky) * d, this.#still.width * kx, this.#still.height * ky);
    pen.restore();
  }
  /** How strongly the parts of the picture are seen: what is made, and what is not made yet. */
  #seen(): { ghost: number; parts: Part[] } {
    const { scene } = this;
    const { width: w, height: h } = scene;
    const fade = scene.stop <= 1 ? (scene.stop === 0 ? 0 : scene.way) : 1;
    const tide = Math.max(0, Math.min(h, scene.camera.y(scene.tide)));
    const ghost = 1 - (1 - this.#ghost) * fade;
    const part = (x0: number, x1: number, y0: number, y1: number, alpha: number): Part => ({ x0, x1, y0, y1, alpha });
    if (!scene.begun) return { ghost: DARK, parts: [part(0, w, 0, h, DARK)] };
    if (!scene.alone) return { ghost, parts: [part(0, w, 0, tide, ghost), part(0, w, tide, h, 1)] };
    // What was computed before is kept: all of it stays lit; what comes later is not there yet.
    const own = Math.max(0, scene.camera.x(scene.column));
    const next = Math.min(w, scene.camera.x(scene.column + 1));
    return { ghost, parts: [part(0, own, 0, h, 1), part(own, next, 0, tide, ghost), part(own, next, tide, h, 1), part(next, w, 0, h, DARK)] };
  }
  /** The picture as it stands, as pieces of a drawing. What stays is written anew only where `known` is not it any more. */
  pieces(pictures: Pictures, known: Pieces | null = null): Pieces {
    const { scene } = this;
    const { sx, sy, ox, oy } = scene.camera;
    const key = [this.#paints, sx, sy, ox, oy].join(' ');
    const ink = this.#ink!;
    const { ghost, parts } = this.#seen();
    const write = (draw: (pen: CanvasRenderingContext2D) => void): string => {
      const pen = new SvgPen(pictures);
      if (scene.count) draw(pen.pen);
      return pen.written;
    };
    const same = known?.key === key;
    const still = same ? known.still : write((pen) => drawStill(scene, pen, ink));
    const front = same ? known.front : write((pen) => drawFront(scene, pen, ink));
    let behind = '';
    const pen = new SvgPen(pictures);
    if (scene.count) drawMoving(scene, pen.pen, ink, ghost, () => (behind = pen.written));
    return { key, still, front, behind, over: pen.written.slice(behind.length), parts };
  }

  hit(px: number, py: number): Hit {
    return hit(this.scene, px, py);
  }
  where(step: string, layer: number, cell = -1): { x: number; y: number } | null {
    return where(this.scene, step, layer, cell);
  }

  /** How long the last frames took to make, in milliseconds: measured, for the docs. */
  frames(): number[] {
    return [...this.#times.slice(0, Math.min(512, this.#count))];
  }
}
