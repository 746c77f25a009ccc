/** The branches a reader has tried: a tree of token ids after the text, small enough to stand in the address. */

export interface Branch {
  id: number;
  children: Branch[];
}

/** `12(34,56(7)),78`: a token, and in brackets those that followed it. */
export function write(branches: Branch[]): string {
  return branches.map((one) => (one.children.length ? `${one.id}(${write(one.children)})` : String(one.id))).join(',');
}

/** The tree an address speaks of; what is no such thing is an empty tree. */
export function read(text: string): Branch[] {
  if (!/^[\d(),]*$/.test(text)) return [];
  const top: Branch = { id: -1, children: [] };
  const open = [top];
  for (const part of text.match(/\d+|[(),]/g) ?? []) {
    const here = open.at(-1)!;
    if (part === '(') {
      const last = here.children.at(-1);
      if (!last) return [];
      open.push(last);
    } else if (part === ')') {
      if (open.length === 1) return [];
      open.pop();
    } else if (part !== ',') here.children.push({ id: Number(part), children: [] });
  }
  return open.length === 1 ? top.children : [];
}

/** The tree with this path in it. */
export function grow(branches: Branch[], path: number[]): Branch[] {
  const [first, ...rest] = path;
  if (first === undefined) return branches;
  const there = branches.find((one) => one.id === first);
  if (there) return branches.map((one) => (one === there ? { ...one, children: grow(one.children, rest) } : one));
  return [...branches, { id: first, children: grow([], rest) }];
}

/** The tree without what begins with this path. */
export function cut(branches: Branch[], path: number[]): Branch[] {
  const [first, ...rest] = path;
  if (!rest.length) return branches.filter((one) => one.id !== first);
  return branches.map((one) => (one.id === first ? { ...one, children: cut(one.children, rest) } : one));
}

export const ids = (branches: Branch[]): number[] => branches.flatMap((one) => [one.id, ...ids(one.children)]);

/** The ways to the ends of the tree. */
export const ends = (branches: Branch[], before: number[] = []): number[][] =>
  branches.flatMap((one) => (one.children.length ? ends(one.children, [...before, one.id]) : [[...before, one.id]]));
