import type { Page } from '..';

export default {
  name: 'piano',
  order: 11.5,
  uncut: true,
  icon: '<rect x="4" y="5" width="16" height="14" rx="1.5"/><path d="M9.3 13v6M14.7 13v6"/><path d="M8 5v8h2.6V5M13.4 5v8H16V5" fill="currentColor" stroke-width="1"/>',
  load: () => import('./Piano.svelte'),
} satisfies Page;
