import type { Page } from '..';

export default {
  name: 'predict',
  order: 1,
  views: ['predict'],
  icon: '<path d="M4 6h14M4 12h9M4 18h5"/>',
  load: () => import('./Predict.svelte'),
} satisfies Page;
