import type { Page } from '..';

export default {
  name: 'layers',
  order: 4,
  views: ['lens'],
  icon: '<path d="m12 3 9 5-9 5-9-5 9-5Z"/><path d="m3 13 9 5 9-5"/>',
  load: () => import('./Layers.svelte'),
} satisfies Page;
