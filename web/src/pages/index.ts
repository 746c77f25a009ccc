/** The pages there are: each folder's page.ts says its place in the list; its picture is loaded when it is opened. */

import type { Component } from 'svelte';
import { isHere } from '../lib/site';

export interface Page {
  name: string;
  /** Its place in the navigation: the number it has in the issue. */
  order: number;
  /** The inside of a 24 x 24 SVG, drawn in strokes. */
  icon: string;
  /** Another model reads the text here, so that the header does not cut it into the chosen model's tokens. */
  uncut?: boolean;
  /** The views it draws: a model that one of them does not fit has nothing to show here. */
  views?: string[];
  /** It says itself (`NAME.remedy`) which model it is for, and how to come by one. */
  remedy?: boolean;
  /** Models that come along and that it is for, and a text to begin with. */
  included?: { models: string[]; text: string };
  load: () => Promise<{ default: Component }>;
}

const files = import.meta.glob<Page>('./*/page.ts', { eager: true, import: 'default' });

export const pages: Page[] = Object.values(files)
  .filter((page) => isHere(page.name))
  .sort((a, b) => a.order - b.order);
