import type { Plugin } from 'vite';

/** A Vite plugin: leaves tour.json beside the built files. */
export function told(): Plugin;
