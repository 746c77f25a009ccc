/** Marks what a step points at, as often as the page makes it anew; until the page has settled, or a hand is on it, it is kept in sight. */

import { moment } from '../state/moment.svelte';

const SETTLING = 1500;
const GAP = 12; // --space-3, kept free around what is pointed at

/** On a phone the details stay at the foot of the screen: nothing has to be scrolled for them. */
const inDock = (one: Element): boolean => {
  const dock = one.closest('.dock');
  return !!dock && getComputedStyle(dock).position === 'sticky';
};

/** `waiting` says whether the step still asks for something. Gives the way back. */
export function keepInSight(card: HTMLElement, { point, page }: { point: string; page: string }, waiting: () => boolean): () => void {
  let marked: Element | null = null;
  let settling = true;
  const see = (): void => {
    if (!marked || inDock(marked)) return;
    const { top, bottom, height } = marked.getBoundingClientRect();
    const from = card.getBoundingClientRect().bottom;
    const dock = [...document.querySelectorAll('.dock, .turns')].map((one) => one.getBoundingClientRect().height);
    const foot = Math.max(0, ...dock); // what lies over the foot of the page: the moment's controls, on a phone the details, too
    document.documentElement.style.setProperty('--dock', `${foot}px`);
    const to = innerHeight - foot;
    const fits = height + 2 * GAP <= to - from; // then it is shown whole
    const nearly = height <= 1.25 * (to - from); // then as much of it as there is room for
    const below = fits || nearly ? bottom > to && top > from + 2 * GAP : top > innerHeight * 0.6;
    if (top < from) marked.scrollIntoView({ block: 'start', behavior: 'instant' });
    else if (below) marked.scrollIntoView({ block: fits ? 'end' : 'start', behavior: 'instant' });
  };
  const mark = (): void => {
    const found = moment.page === page ? document.querySelector(`[data-tour="${point}"]`) : null;
    if (found !== marked) {
      marked?.removeAttribute('data-toured');
      marked = found;
      marked?.setAttribute('data-toured', '');
    }
    if (settling) see();
  };
  // A hand ends it; the one that sets the step up again begins it anew.
  const settle = (event?: Event): void => {
    settling = event?.target instanceof Element && !!event.target.closest('.again');
    if (!settling) return;
    clearTimeout(timer);
    timer = setTimeout(wait, SETTLING);
    requestAnimationFrame(see);
  };
  // However long the page takes: it has settled when for a while nothing more has been asked for.
  let timer = setTimeout(wait, SETTLING);
  function wait(): void {
    if (document.querySelector('.picture[aria-busy=true]') || waiting()) timer = setTimeout(wait, SETTLING);
    else settle();
  }
  const hands = ['wheel', 'pointerdown', 'keydown'];
  for (const hand of hands) addEventListener(hand, settle, { passive: true });
  const watcher = new MutationObserver(mark);
  watcher.observe(document.body, { childList: true, subtree: true });
  // Where the card stays above the page, what it points at comes to stand below it: its height must be known first.
  const sizes = new ResizeObserver(() => {
    document.documentElement.style.setProperty('--guide', `${card.offsetHeight}px`);
    if (settling) see();
  });
  sizes.observe(card);
  document.documentElement.style.setProperty('--guide', `${card.offsetHeight}px`);
  mark();
  return () => {
    watcher.disconnect();
    sizes.disconnect();
    clearTimeout(timer);
    for (const hand of hands) removeEventListener(hand, settle);
    marked?.removeAttribute('data-toured');
  };
}
