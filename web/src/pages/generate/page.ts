import type { Page } from '..';

export default {
  name: 'generate',
  order: 7,
  views: ['writing'],
  icon: '<path d="M4 7h10M4 12h6"/><path d="M4 17h4"/><rect x="12" y="11" width="9" height="9" rx="2"/><path d="M15 14h.01M18 17h.01"/>',
  load: () => import('./Generate.svelte'),
} satisfies Page;
