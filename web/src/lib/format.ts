/** Numbers as they stand on the page. */

const MINUS = '−';

/** Three significant digits, a true minus sign; never an exponent between a thousandth and a million. */
export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : `${MINUS}∞`;
  const size = Math.abs(value);
  let text: string;
  if (size === 0) text = '0';
  else if (size >= 1e6 || size < 1e-4) text = size.toExponential(digits - 1).replace('e+', 'e').replace('e-', `e${MINUS}`);
  else if (size >= 10 ** (digits - 1)) text = Math.round(size).toString();
  else text = size.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  return value < 0 && Number(text.replace(MINUS, '-')) !== 0 ? MINUS + text : text;
}

/** A share as a percentage: 48.3%, 0.52%, <0.01%. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return '–';
  const value = share * 100;
  if (value === 0) return '0%';
  if (value < 0.01) return '<0.01%';
  if (value > 99.95 && value < 100) return '>99.9%';
  return `${value >= 99.95 ? '100' : value.toFixed(value < 1 ? 2 : 1)}%`;
}

/** A whole number with thin groups: 50 257. */
export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

/** 124M, 3.5M, 812k. */
export function short(value: number): string {
  for (const [unit, size] of [['B', 1e9], ['M', 1e6], ['k', 1e3]] as const) {
    if (value >= size) return `${value / size >= 100 ? Math.round(value / size) : (value / size).toFixed(value / size >= 10 ? 0 : 1)}${unit}`;
  }
  return String(value);
}

export function bytes(value: number): string {
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]] as const) {
    if (value >= size) return `${(value / size).toFixed(value / size >= 10 ? 0 : 1)}\u00a0${unit}`;
  }
  return `${value}\u00a0B`;
}
