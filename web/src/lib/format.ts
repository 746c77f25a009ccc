/** Numbers as they stand on the page, written as the reader's language writes them. */

import { preferences } from '../state/preferences.svelte';
import type { Language } from './catalogue';

const MINUS = '−';
const made: Record<string, Intl.NumberFormat> = {};

/** Making a formatter takes far longer than using it, and a table has thousands of cells. */
function formatter(language: Language, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  return (made[language + JSON.stringify(options)] ??= new Intl.NumberFormat(language, options));
}

/** Always so many digits after the decimal point, or comma. */
export function fixed(value: number, digits: number, language = preferences.language): string {
  return formatter(language, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value).replace('-', MINUS);
}

/** Three significant digits, a true minus sign; never an exponent between a thousandth and a million. */
export function number(value: number | null | undefined, digits = 3, language = preferences.language): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : `${MINUS}∞`;
  const size = Math.abs(value);
  let text: string;
  if (size === 0) return '0';
  else if (size >= 1e6 || size < 1e-4) {
    const [mantissa, power] = size.toExponential(digits - 1).split('e');
    text = `${fixed(Number(mantissa), digits - 1, language)}e${power!.replace('+', '').replace('-', MINUS)}`;
  } else text = fixed(size, Math.max(0, digits - 1 - Math.floor(Math.log10(size))), language);
  return value < 0 ? MINUS + text : text;
}

/** A share as a percentage: 48.3%, 0.52%, <0.01%; in Russian 48,3 %. */
export function percent(share: number | null | undefined, language = preferences.language): string {
  if (share === null || share === undefined || Number.isNaN(share)) return '–';
  const write = (value: number, digits: number): string => formatter(language, { style: 'percent', minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
  if (share === 0) return write(0, 0);
  if (share < 0.0001) return `<${write(0.0001, 2)}`;
  if (share > 0.9995 && share < 1) return `>${write(0.999, 1)}`;
  return share >= 0.9995 ? write(1, 0) : write(share, share < 0.01 ? 2 : 1);
}

/** A share where there is little room: 48%; in Russian 48 %. */
export function wholePercent(share: number, language = preferences.language): string {
  return formatter(language, { style: 'percent', maximumFractionDigits: 0 }).format(share);
}

/** A whole number with its groups: 50,257; in Russian 50 257. */
export function count(value: number, language = preferences.language): string {
  return formatter(language, { maximumFractionDigits: 0 }).format(value);
}

/** 124M, 3.6M, 812K; 1.2亿, 356万; 124 млн, 3,6 млн. */
export function short(value: number, language = preferences.language): string {
  return formatter(language, { notation: 'compact' }).format(value);
}

/** 498 MB, 1.2 GB; 498 МБ, 1,2 ГБ. */
export function bytes(value: number, language = preferences.language): string {
  const [unit, size] = value >= 1e9 ? ['gigabyte', 1e9] : value >= 1e6 ? ['megabyte', 1e6] : value >= 1e3 ? ['kilobyte', 1e3] : ['byte', 1];
  const digits = size > 1 && value / size < 10 ? 1 : 0;
  return formatter(language, { style: 'unit', unit: unit as string, unitDisplay: 'short', minimumFractionDigits: digits, maximumFractionDigits: digits })
    .format(value / (size as number))
    .replace(' ', '\u00a0');
}
