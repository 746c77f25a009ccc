import type { Page } from '..';

export default {
  name: 'senses',
  order: 6.5,
  views: ['senses'],
  icon: '<path d="M12 20V12M12 12 5 5M12 12l7-7"/><circle cx="12" cy="20" r="1.5"/><circle cx="5" cy="5" r="1.5"/><circle cx="19" cy="5" r="1.5"/>',
  load: () => import('./Senses.svelte'),
} satisfies Page;
