import type { Page } from '..';

export default {
  name: 'attention',
  order: 3,
  views: ['attention'],
  icon: '<path d="M5 5c10 0 4 14 14 14M5 19c10 0 4-14 14-14"/>',
  load: () => import('./Attention.svelte'),
} satisfies Page;
