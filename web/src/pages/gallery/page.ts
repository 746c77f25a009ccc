import type { Page } from '..';

export default {
  name: 'gallery',
  order: 11,
  views: ['attention'],
  icon: '<rect x="4" y="5" width="7" height="6" rx="1"/><rect x="14" y="5" width="6" height="10" rx="1"/><rect x="4" y="14" width="7" height="5" rx="1"/><path d="M14 19h6"/>',
  load: () => import('./Gallery.svelte'),
} satisfies Page;
