/** Many numbers in few pixels: what stands out must not vanish. */

/** Each of `bins` cells takes the value of largest size among those that fall into it. */
export function foldVector(values: ArrayLike<number>, bins: number): Float32Array {
  const n = values.length;
  const out = new Float32Array(Math.min(bins, n));
  for (let bin = 0; bin < out.length; bin++) {
    const from = Math.floor((bin * n) / out.length);
    const to = Math.max(from + 1, Math.floor(((bin + 1) * n) / out.length));
    let best = values[from] ?? 0;
    for (let i = from + 1; i < to; i++) if (Math.abs(values[i]!) > Math.abs(best)) best = values[i]!;
    out[bin] = best;
  }
  return out;
}

export interface Window {
  row: number;
  column: number;
  /** So many rows and columns are in sight. */
  size: number;
}

/** The part of a table that is in sight, at most `pixels` wide and high; of several cells in one pixel the largest. */
export function foldTable(
  values: Float32Array,
  rows: number,
  columns: number,
  seen: Window,
  pixels: number,
): { rows: number; columns: number; values: Float32Array } {
  const r = Math.min(seen.size, rows - seen.row);
  const c = Math.min(seen.size, columns - seen.column);
  const high = Math.min(r, pixels);
  const wide = Math.min(c, pixels);
  const out = new Float32Array(high * wide);
  if (high === r && wide === c) {
    for (let i = 0; i < r; i++) {
      const start = (seen.row + i) * columns + seen.column;
      out.set(values.subarray(start, start + c), i * c);
    }
    return { rows: r, columns: c, values: out };
  }
  out.fill(-Infinity);
  for (let i = 0; i < r; i++) {
    const y = Math.floor((i * high) / r);
    const start = (seen.row + i) * columns + seen.column;
    for (let j = 0; j < c; j++) {
      const at = y * wide + Math.floor((j * wide) / c);
      const value = values[start + j]!;
      if (value > out[at]!) out[at] = value;
    }
  }
  return { rows: high, columns: wide, values: out };
}

/** Move a window so that a cell is inside it. */
export function bring(seen: Window, row: number, column: number, rows: number, columns: number): Window {
  const into = (start: number, at: number, all: number): number =>
    Math.max(0, Math.min(Math.max(0, all - seen.size), at < start ? at : at >= start + seen.size ? at - seen.size + 1 : start));
  return { ...seen, row: into(seen.row, row, rows), column: into(seen.column, column, columns) };
}
