import type { Page } from '..';

export default {
  name: 'jobs',
  order: 12,
  uncut: true,
  icon: '<path d="M4 4v16h16"/><path d="M7 7c2 6 5 9 12 9.5"/>',
  load: () => import('./Jobs.svelte'),
} satisfies Page;
