/**
 * The way one came, in the browser's own history: what a hand does on purpose is an entry, so that Back, undo and redo go from
 * moment to moment; what follows from it (typing on, dragging on, playing, holding an arrow key) changes that entry.
 */

interface Entry {
  /** Its place among the entries of this visit. */
  n: number;
  /** The settings of all pages; the address knows only those of the page shown. */
  settings: Record<string, Record<string, string>>;
}

const MOVES = /^(Arrow|Home|End|Page)/;
const MODIFIERS = new Set(['Shift', 'Control', 'Alt', 'Meta', 'AltGraph']);

export const isField = (target: HTMLElement): boolean =>
  target.isContentEditable || target.tagName === 'TEXTAREA' || (target.tagName === 'INPUT' && !/^(radio|checkbox|range|button|submit)$/.test((target as HTMLInputElement).type));

export class Past {
  #n = 0;
  #last = 0;
  /** What the hand is doing, and what it was doing when the newest entry was made. */
  #doing: unknown = null;
  #made: unknown = null;
  #begun = false;

  /** `flush` writes what has changed; `take` goes where the address is. */
  constructor(
    readonly flush: () => void,
    readonly take: (settings: Entry['settings'] | null) => void,
  ) {}

  /** The settings of all pages at the entry being shown, where this visit goes on after a reload. */
  get settings(): Entry['settings'] | null {
    return (history.state as Entry | null)?.settings ?? null;
  }

  start(): void {
    this.#n = this.#last = (history.state as Entry | null)?.n ?? 0;
    addEventListener('popstate', (event) => this.#went(event.state as Entry | null));
    addEventListener('hashchange', () => history.state === null && this.#went(null));
    addEventListener('pointerdown', () => this.#does({}), true);
    addEventListener('keydown', (event) => this.#pressed(event), true);
    // A click that no hand made (a screen reader's) is a deed, too.
    addEventListener('click', () => (this.#begun ? (this.#begun = false) : (this.#does({}), (this.#begun = false))), true);
  }

  #does(what: unknown): void {
    this.#begun = true;
    if (what === this.#doing) return;
    this.flush();
    this.#doing = what;
  }
  #pressed(event: KeyboardEvent): void {
    if (event.repeat || MODIFIERS.has(event.key)) return;
    const target = event.target as HTMLElement;
    this.#does(isField(target) ? target : MOVES.test(event.key) ? 'moves' : {});
  }
  /** The browser went to another entry, or to an address that has none yet. */
  #went(entry: Entry | null): void {
    this.#made = this.#doing;
    if (entry) this.#n = entry.n;
    else this.#last = ++this.#n;
    this.take(entry?.settings ?? null);
    if (!entry) this.flush(); // from now on it is an entry with a place, like the others
  }

  /** The moment is at this address now. */
  write(address: string, settings: Entry['settings']): void {
    const same = this.#made === this.#doing;
    if (!same) this.#last = ++this.#n;
    this.#made = this.#doing;
    history[same ? 'replaceState' : 'pushState']({ n: this.#n, settings } satisfies Entry, '', address);
  }
  /** Another page is an entry of its own, whatever was done before. */
  turn(): void {
    this.flush();
    this.#made = {};
  }

  undo(): void {
    this.flush();
    if (this.#n > 0) history.back();
  }
  redo(): void {
    this.flush();
    if (this.#n < this.#last) history.forward();
  }
}
