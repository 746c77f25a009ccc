/** One camera over the machine: from the whole of it to a single number, and no cut between. */

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Margin {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const TRAVEL = 0.9; // seconds from one level to the next

/** World: x in columns to the right, y in floors upward. Screen: pixels, y downward. */
export class Camera {
  sx = 1;
  sy = 1;
  ox = 0;
  oy = 0;
  /** Whether it is on its way. */
  moving = false;
  #from = new Float64Array(4);
  #to = new Float64Array(4);
  #time = 1;
  #width = 1;
  #height = 1;

  x(x: number): number {
    return this.ox + x * this.sx;
  }
  y(y: number): number {
    return this.oy - y * this.sy;
  }
  atX(px: number): number {
    return (px - this.ox) / this.sx;
  }
  atY(py: number): number {
    return (this.oy - py) / this.sy;
  }

  size(width: number, height: number): void {
    this.#width = width;
    this.#height = height;
  }

  /** Go where a box fills what is inside the margin; at once, or on a way that can be followed. */
  show(box: Box, margin: Margin, most: number, at_once: boolean): void {
    const wide = Math.max(20, this.#width - margin.left - margin.right);
    const tall = Math.max(20, this.#height - margin.top - margin.bottom);
    const sx = Math.min(most, wide / box.w);
    const sy = tall / box.h;
    const to = this.#to;
    to[0] = Math.log(sx);
    to[1] = Math.log(sy);
    to[2] = box.x + box.w / 2;
    to[3] = box.y + box.h / 2;
    this.#mid(margin);
    const from = this.#from;
    from[0] = Math.log(this.sx);
    from[1] = Math.log(this.sy);
    from[2] = this.atX(this.#midX);
    from[3] = this.atY(this.#midY);
    this.#time = at_once ? 1 : 0;
    this.moving = true;
    this.step(0);
  }
  #midX = 0;
  #midY = 0;
  #mid(margin: Margin): void {
    this.#midX = margin.left + (this.#width - margin.left - margin.right) / 2;
    this.#midY = margin.top + (this.#height - margin.top - margin.bottom) / 2;
  }

  /** On by so many seconds. */
  step(seconds: number): void {
    if (!this.moving) return;
    this.#time = Math.min(1, this.#time + seconds / TRAVEL);
    const t = this.#time;
    const e = t < 0.5 ? 4 * t * t * t : 1 - (-2 * t + 2) ** 3 / 2;
    const { 0: a, 1: b, 2: c, 3: d } = this.#from;
    const to = this.#to;
    this.sx = Math.exp(a! + (to[0]! - a!) * e);
    this.sy = Math.exp(b! + (to[1]! - b!) * e);
    // What is zoomed into stays in sight on the way: the centre goes as fast as the scale shrinks what lies between.
    const ease = (scale: number, start: number, end: number): number => (Math.abs(start - end) < 1e-6 ? e : (1 / scale - Math.exp(-start)) / (Math.exp(-end) - Math.exp(-start)));
    const cx = c! + (to[2]! - c!) * ease(this.sx, a!, to[0]!);
    const cy = d! + (to[3]! - d!) * ease(this.sy, b!, to[1]!);
    this.ox = this.#midX - cx * this.sx;
    this.oy = this.#midY + cy * this.sy;
    if (t >= 1) this.moving = false;
  }

  /** Nearer or farther by a factor, keeping what is under a point of the screen. */
  zoom(factor: number, sideways: number, px: number, py: number): void {
    this.moving = false;
    const wx = this.atX(px);
    const wy = this.atY(py);
    this.sx *= sideways;
    this.sy *= factor;
    this.ox = px - wx * this.sx;
    this.oy = py + wy * this.sy;
  }

  pan(dx: number, dy: number): void {
    this.moving = false;
    this.ox += dx;
    this.oy += dy;
  }
}
