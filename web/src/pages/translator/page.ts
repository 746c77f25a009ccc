import type { Page } from '..';

export default {
  name: 'translator',
  order: 9.5,
  icon: '<path d="M4 5v14M9 5v14M15 5v14M20 5v14" stroke-dasharray="3 2.5"/><path d="m9 8 6 8m0-8-6 8"/>',
  load: () => import('./Translator.svelte'),
} satisfies Page;
