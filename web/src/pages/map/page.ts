import type { Page } from '..';

export default {
  name: 'map',
  order: 8.5,
  views: ['sweep', 'change'],
  icon: '<path d="M4 4h16v16H4zM4 9.3h16M4 14.7h16M9.3 4v16M14.7 4v16"/><path d="M14.7 9.3h5.3v5.4h-5.3z" fill="currentColor"/>',
  load: () => import('./CausalMap.svelte'),
} satisfies Page;
