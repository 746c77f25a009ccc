import type { Page } from '..';

export default {
  name: 'encoder',
  order: 11.7,
  views: ['sentences'],
  remedy: true,
  included: { models: ['bert'], text: 'The little dog began to [MASK] at the cat.' },
  icon: '<path d="M8 5H5v14h3M16 5h3v14h-3M9 12h6M11 9.5 8.5 12l2.5 2.5M13 9.5l2.5 2.5-2.5 2.5"/>',
  load: () => import('./Encoder.svelte'),
} satisfies Page;
