/** On pages whose numbers no view compares: those that are not the same on the other side are marked where they stand. */

export interface Marked {
  differ: number;
  all: number;
  /** Whether something on the page has other rows or columns on the other side, so that its numbers have no counterpart. */
  unlike: boolean;
}

/** The numbers of a page as it stands, by the exhibit they belong to. */
function numbers(page: Document): Map<string, HTMLElement[]> {
  const found = new Map<string, HTMLElement[]>();
  for (const one of page.querySelectorAll<HTMLElement>('main :is(td, data)')) {
    if (one.querySelector('data') || !/\d/.test(one.textContent) || one.closest('header, .dock')) continue;
    const exhibit = one.closest<HTMLElement>('[data-exhibit]')?.dataset.exhibit ?? '';
    found.set(exhibit, [...(found.get(exhibit) ?? []), one]);
  }
  return found;
}

export function unmark(page: Document): void {
  for (const one of page.querySelectorAll<HTMLElement>('[data-differs]')) {
    delete one.dataset.differs;
    one.removeAttribute('title');
  }
}

/** `say` tells what a number is on the other side. */
export function mark(left: Document, right: Document, say: (other: string) => string): Marked {
  unmark(left);
  unmark(right);
  const [one, other] = [numbers(left), numbers(right)];
  const marked = { differ: 0, all: 0, unlike: false };
  for (const name of new Set([...one.keys(), ...other.keys()])) {
    const [mine, theirs] = [one.get(name) ?? [], other.get(name) ?? []];
    if (mine.length !== theirs.length) {
      marked.unlike = true;
      continue;
    }
    marked.all += mine.length;
    mine.forEach((number, i) => {
      const pair = [number, theirs[i]!] as const;
      const [a, b] = pair.map((each) => each.textContent.trim()) as [string, string];
      if (a === b) return;
      marked.differ += 1;
      pair.forEach((each, n) => {
        each.dataset.differs = '';
        each.title = say(n ? a : b);
      });
    });
  }
  return marked;
}
