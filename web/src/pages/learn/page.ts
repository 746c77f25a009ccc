import type { Page } from '..';

export default {
  name: 'learn',
  order: 7.5,
  uncut: true,
  icon: '<path d="M4 5v14h16"/><path d="M7 8c1 7 5 8 12 8.5"/><path d="m14 5 1.5 3L19 9l-3.5 1L14 13l-1.5-3L9 9l3.5-1Z"/>',
  load: () => import('./Learn.svelte'),
} satisfies Page;
