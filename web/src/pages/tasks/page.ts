import type { Page } from '..';

export default {
  name: 'tasks',
  order: 10,
  uncut: true,
  icon: '<path d="M4 6h9M4 11h7M4 16h5"/><path d="m13 17 3 3 5-7"/>',
  load: () => import('./Tasks.svelte'),
} satisfies Page;
