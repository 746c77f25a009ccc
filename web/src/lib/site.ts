/** Whether this page is a static site (`cutaway explore --export`), and what was written into it. */

/** A moment that was given to show: what it is called, and its address. */
export interface Shown {
  title: string;
  address: string;
}

export interface Site {
  /** The one model that is here. */
  model: string;
  /** What a visit begins with, if it is not what it always is. */
  text?: string;
  /** The bytes of its weights, and of everything. */
  bytes: number;
  total: number;
  version: string;
  moments: Shown[];
  /** Whether it was opened by its plain address, without a link into it. */
  bare: boolean;
}

const written = typeof document === 'undefined' ? null : document.getElementById('cutaway-site');

export const site: Site | null = written ? { ...(JSON.parse(written.textContent) as Site), bare: location.hash.length < 3 } : null;

/** What a page without Python behind it can show. */
const PAGES = new Set(['predict', 'walk', 'attention', 'layers', 'causes', 'neurons', 'generate', 'change', 'map', 'weights', 'tasks', 'gallery']);

export const isHere = (page: string): boolean => !site || PAGES.has(page);
