import type { Page } from '..';

export default {
  name: 'walk',
  order: 2,
  views: ['values'],
  icon: '<path d="M5 20v-4h5v-5h5V6h5"/><path d="m17 3 3 3-3 3"/>',
  load: () => import('./Walk.svelte'),
} satisfies Page;
