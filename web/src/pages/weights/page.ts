import type { Page } from '..';

export default {
  name: 'weights',
  order: 9,
  icon: '<path d="M4 4h16v16H4z"/><path d="M4 9.3h16M4 14.6h16M9.3 4v16M14.6 4v16"/>',
  load: () => import('./Weights.svelte'),
} satisfies Page;
