/** How wide words are, for boxes and margins that are made for the words they hold; and when the page can be measured. */

let pen: CanvasRenderingContext2D | null = null;

/** The width in pixels of a text in the fixed-width face of the page. */
export function wide(text: string, size: number, weight = 400): number {
  pen ??= document.createElement('canvas').getContext('2d')!;
  pen.font = `${weight} ${size}px ${getComputedStyle(document.documentElement).getPropertyValue('--mono')}`;
  return pen.measureText(text).width;
}

/** A label beside a table is no longer than this. */
export const LONGEST = 76;

/** How far labels that lean to the right reach past the last of their columns, at least `step` pixels apart. */
export function overhang(labels: string[], step: number, size = 12): number {
  return Math.max(0, ...labels.map((label, i) => Math.min(LONGEST, wide(label, size, 700)) * 0.58 + 6 - (labels.length - i - 0.5) * step));
}

/**
 * Measure before the next paint, when all that changes has changed: asked at once, the browser would lay the page out for every
 * effect that asks. Gives the way back, for an effect to return.
 */
export function beforePaint(run: () => void): () => void {
  const frame = requestAnimationFrame(run);
  return () => cancelAnimationFrame(frame);
}
