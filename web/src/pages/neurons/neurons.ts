/** What `cutaway.inspect.neurons` and `.factors` say, and what can be lit on the text. */

/** One line of the list of factors or groups. */
export interface Part {
  key: string;
  name: string;
  line: number[];
  size: string;
  value: number;
  byLayer: number[];
  neurons: [number, number][];
}

/** Positions by how strongly they are excited, the strongest first. */
export function excited(line: number[], most: number): { position: number; value: number }[] {
  return line
    .map((value, position) => ({ position, value }))
    .filter((one) => one.value > 0)
    .sort((a, b) => b.value - a.value || a.position - b.position)
    .slice(0, most);
}

/** A table in so many pixels: of the cells that fall on one, the largest. */
export function fold(values: ArrayLike<number>, rows: number, columns: number, high: number, wide: number): Float32Array {
  const out = new Float32Array(high * wide).fill(-Infinity);
  for (let i = 0; i < rows; i++) {
    const y = Math.floor((i * high) / rows);
    for (let j = 0; j < columns; j++) {
      const at = y * wide + Math.floor((j * wide) / columns);
      const value = values[i * columns + j]!;
      if (value > out[at]!) out[at] = value;
    }
  }
  return out;
}

/** The line over the text as an SVG path, filled to the ground; where it has a sign, the ground is in between. */
export function area(line: number[], wide: number, high: number): string {
  const most = Math.max(1e-9, ...line);
  const least = Math.min(0, ...line);
  const step = wide / Math.max(1, line.length);
  const room = high - 1;
  const ground = high - room * (-least / (most - least));
  const y = (value: number): string => (ground - (room * value) / (most - least)).toFixed(1);
  return `M0 ${ground.toFixed(1)}${line.map((value, i) => `L${(i * step).toFixed(1)} ${y(value)}L${((i + 1) * step).toFixed(1)} ${y(value)}`).join('')}L${wide} ${ground.toFixed(1)}Z`;
}
