/** Keys that work anywhere, unless a field is being written in. A page adds its own while it is open. */

import { moment } from '../state/moment.svelte';
import { isField } from '../state/past';
import { preferences } from '../state/preferences.svelte';
import { pages } from '../pages';
import { tour } from '../tour/tour.svelte';

type Press = (event: KeyboardEvent) => boolean;

class Keys {
  help = $state(false);
  editing = $state(false);
  #page: Press | null = null;

  /** A page's own keys; call it in an $effect, it gives the way back. */
  own(press: Press): () => void {
    this.#page = press;
    return () => {
      if (this.#page === press) this.#page = null;
    };
  }

  press(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.defaultPrevented || event.altKey || isField(target) || document.querySelector('dialog[open]')) return;
    if (event.ctrlKey || event.metaKey) {
      if (this.#past(event)) event.preventDefault();
      return;
    }
    if (moment.present && tour.step && this.#presented(event, target)) return event.preventDefault();
    if (target.tagName === 'SELECT' || (target as HTMLInputElement).type === 'range') return;
    // A sign alone can be said by someone who dictates, or struck by chance: it can be turned off (WCAG 2.1.4).
    if (!preferences.letters && event.key.length === 1 && event.key !== ' ') return;
    if (this.#page?.(event) || this.#common(event, target)) event.preventDefault();
  }

  /** As the little devices for speakers send them, too: Page Down, Page Up. */
  #presented(event: KeyboardEvent, target: HTMLElement): boolean {
    if (event.key === 'Escape') tour.present(false);
    else if (event.key === 'PageDown' || event.key === 'ArrowRight' || (event.key === ' ' && !target.closest('button, a, summary'))) tour.turn(1);
    else if (event.key === 'PageUp' || event.key === 'ArrowLeft') tour.turn(-1);
    else return false;
    return true;
  }

  #past(event: KeyboardEvent): boolean {
    const key = event.key.toLowerCase();
    if (key === 'z' && event.shiftKey) moment.past.redo();
    else if (key === 'z') moment.past.undo();
    else if (key === 'y' && !event.shiftKey) moment.past.redo();
    else return false;
    return true;
  }

  #common(event: KeyboardEvent, target: HTMLElement): boolean {
    const shape = moment.trace?.shape;
    if (event.key === '?') this.help = true;
    else if (event.key === 'Backspace') return moment.unpick();
    else if (event.code === 'BracketRight' && tour.step) tour.go(1);
    else if (event.code === 'BracketLeft' && tour.step) tour.go(-1);
    else if (event.key === 'e' || event.key === '/') this.editing = true;
    else if (event.key === 'n' || event.key === 'p') {
      const at = pages.findIndex((page) => page.name === moment.page);
      moment.go(pages[(at + (event.key === 'n' ? 1 : pages.length - 1)) % pages.length]!.name);
    } else if (event.key.startsWith('Arrow') && target.tagName !== 'INPUT' && shape) {
      const by = event.key === 'ArrowRight' || event.key === 'ArrowUp' ? 1 : -1;
      const sideways = event.key === 'ArrowRight' || event.key === 'ArrowLeft';
      const within = (value: number, most: number): number => Math.max(0, Math.min(most - 1, value));
      if (sideways && !event.shiftKey) moment.choose(within(moment.at + by, moment.tokens.length));
      else if (sideways) moment.head = within(moment.atHead + by, shape.heads);
      else if (event.shiftKey) moment.layer = within(moment.atLayer + by, shape.layers);
      else return false;
    } else return false;
    return true;
  }
}

export const keys = new Keys();
