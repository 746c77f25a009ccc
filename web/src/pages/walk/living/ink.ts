/** The colours of the theme being worn, as a canvas takes them, and words in a box. */

const NAMES = [
  'paper', 'surface', 'sunken', 'line', 'line-strong', 'ink', 'ink-2', 'ink-3', 'accent', 'accent-soft', 'token', 'token-soft', 'position', 'position-soft',
  'query', 'query-soft', 'key', 'key-soft', 'value', 'value-soft', 'neuron', 'neuron-soft', 'residual', 'residual-soft', 'attention', 'attention-soft',
] as const;
export type InkName = (typeof NAMES)[number];
export type Ink = Record<InkName, string> & { sans: string; mono: string };

export function readInk(): Ink {
  const look = getComputedStyle(document.documentElement);
  const found = Object.fromEntries(NAMES.map((name) => [name, look.getPropertyValue(`--${name}`).trim()])) as Record<InkName, string>;
  return { ...found, sans: look.getPropertyValue('--sans').trim(), mono: look.getPropertyValue('--mono').trim() };
}

/** The colour of a kind of thing, as everywhere in the explorer. */
const KINDS: Record<string, InkName> = {
  token: 'token', position: 'position', query: 'query', key: 'key', value: 'value', mixed: 'value', merged: 'value',
  score: 'attention', masked: 'attention', weight: 'attention', attention_out: 'attention', hidden: 'neuron', neurons: 'neuron', mlp_out: 'neuron',
};
export const inkOf = (kind: string): InkName => KINDS[kind] ?? 'residual';
export const groupInk = (group: string): InkName => (group === 'attention' ? 'attention' : group === 'cross' ? 'query' : group === 'mlp' ? 'neuron' : 'residual');

const cut = new Map<string, string>();
/** As much of a word as fits; what was cut once is remembered. */
export function fit(pen: CanvasRenderingContext2D, words: string, room: number): string {
  const key = `${pen.font}|${Math.round(room)}|${words}`;
  const known = cut.get(key);
  if (known !== undefined) return known;
  let found = words;
  if (pen.measureText(words).width > room) {
    const signs = [...words];
    while (signs.length > 1 && pen.measureText(`${signs.join('')}…`).width > room) signs.pop();
    found = signs.length > 1 || room > 14 ? `${signs.join('')}…` : '';
  }
  if (cut.size > 4000) cut.clear();
  cut.set(key, found);
  return found;
}

/** 0 below `low`, 1 above `high`, smooth between. */
export function ramp(value: number, low: number, high: number): number {
  const t = Math.max(0, Math.min(1, (value - low) / (high - low)));
  return t * t * (3 - 2 * t);
}
export const ease = (t: number): number => t * t * (3 - 2 * t);
