import type { Plugin } from 'vite';

/** The module `virtual:messages`: every key once, and each language's messages in that order. */
export function messages(): Plugin;
