import type { Page } from '..';

export default {
  name: 'neurons',
  order: 6,
  views: ['neurons'],
  icon: '<circle cx="5" cy="7" r="2"/><circle cx="5" cy="17" r="2"/><circle cx="13" cy="12" r="3"/><path d="m7 8 3.5 2.5M7 16l3.5-2.5M16 12h5"/>',
  load: () => import('./Neurons.svelte'),
} satisfies Page;
