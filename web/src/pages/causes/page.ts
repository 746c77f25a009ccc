import type { Page } from '..';

export default {
  name: 'causes',
  order: 5,
  views: ['saliency'],
  icon: '<path d="M4 6h5M4 12h3M4 18h5"/><path d="M10 6c5 0 5 6 9 6M8 12h11M10 18c5 0 5-6 9-6"/><circle cx="20" cy="12" r="1.5"/>',
  load: () => import('./Causes.svelte'),
} satisfies Page;
