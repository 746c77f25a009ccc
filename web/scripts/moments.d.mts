import type { Plugin } from 'vite';

/** Leaves moments.json beside the built files. */
export function moments(): Plugin;
