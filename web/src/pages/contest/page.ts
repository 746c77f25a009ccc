import type { Page } from '..';

export default {
  name: 'contest',
  order: 9.7,
  uncut: true,
  icon: '<path d="M4 12h4M8 12c3 0 3-7 6-7h6M8 12c3 0 3 7 6 7h6M8 12h12"/><path d="m18 3 2 2-2 2m0 3 2 2-2 2m0 3 2 2-2 2"/>',
  load: () => import('./Contest.svelte'),
} satisfies Page;
