/** What is changed inside the model. The list stands in the address; one that is off stays in it and does nothing. */

import { number } from '../../lib/format';
import { moment } from '../../state/moment.svelte';
import { t } from '../../state/preferences.svelte';

export const KINDS = ['ablate_head', 'ablate_neuron', 'steer', 'toward', 'patch'] as const;
export type Kind = (typeof KINDS)[number];

/** A change as `cutaway.inspect.change.from_dict` reads it, and whether it is off. */
export interface Change {
  kind: Kind;
  layer?: number;
  head?: number;
  neuron?: number;
  toward?: string;
  away?: string;
  token?: string;
  strength?: number;
  name?: string;
  text?: string;
  source?: number;
  position?: number;
  off?: boolean;
}

function parse(written: string): Change[] {
  try {
    const list: unknown = JSON.parse(written);
    return Array.isArray(list) ? list.filter((one) => KINDS.includes(one?.kind)).slice(0, 64) : [];
  } catch {
    return [];
  }
}

const same = (a: Change, b: Change): boolean => JSON.stringify({ ...a, off: false }) === JSON.stringify({ ...b, off: false });

class Changes {
  list = $derived(parse(moment.setting('changes', '[]', 'change')));
  /** What the server is told: those that are on. */
  active = $derived(this.list.filter((one) => !one.off).map(({ off: _, ...rest }) => rest));

  #put(list: Change[]): void {
    moment.set('changes', JSON.stringify(list), '[]', 'change');
  }
  add(change: Change): void {
    if (!this.list.some((one) => same(one, change))) this.#put([...this.list, change]);
  }
  remove(index: number): void {
    this.#put(this.list.filter((_, i) => i !== index));
  }
  clear(): void {
    this.#put([]);
  }
  alter(index: number, part: Partial<Change>): void {
    this.#put(this.list.map((one, i) => (i === index ? { ...one, ...part } : one)));
  }
  turn(index: number): void {
    const { off, ...rest } = this.list[index]!;
    this.#put(this.list.map((one, i) => (i === index ? (off ? rest : { ...rest, off: true }) : one)));
  }
  /** All off, or, if none is on, all on. */
  turnAll(): void {
    const off = this.active.length > 0;
    this.#put(this.list.map(({ off: _, ...rest }) => (off ? { ...rest, off } : rest)));
  }
  /** The place in the list of a head that is out, for the token given or for all. */
  head(layer: number, head: number, position?: number): number {
    return this.list.findIndex((one) => one.kind === 'ablate_head' && one.layer === layer && one.head === head && one.position === position);
  }
  turnHead(layer: number, head: number, position?: number): void {
    const found = this.head(layer, head, position);
    if (found >= 0) this.remove(found);
    else this.add({ kind: 'ablate_head', layer, head, ...(position === undefined ? {} : { position }) });
  }
}

export const changes = new Changes();

/** What can be patched, in the order of a block. */
export const PARTS = ['attention.heads', 'attention.output', 'mlp.output', 'residual'] as const;

/** A change in words. */
export function words(one: Change): string {
  const quoted = (text = ''): string => `“${[...text].length > 28 ? `${[...text].slice(0, 27).join('')}…` : text}”`;
  const layer = one.layer ?? /^blocks\.(\d+)\./.exec(one.name ?? '')?.[1] ?? 0;
  const said =
    one.kind === 'ablate_head' ? t('change.does_ablate_head', { layer, head: one.head ?? 0 })
    : one.kind === 'ablate_neuron' ? t('change.does_ablate_neuron', { layer, neuron: String(one.neuron ?? 0) })
    : one.kind === 'toward' ? t('change.does_toward', { layer, token: quoted(one.token), strength: number(one.strength ?? 1) })
    : one.kind === 'steer' && one.away ? t('change.does_steer_between', { layer, toward: quoted(one.toward), away: quoted(one.away), strength: number(one.strength ?? 1) })
    : one.kind === 'steer' ? t('change.does_steer', { layer, toward: quoted(one.toward), strength: number(one.strength ?? 1) })
    : t('change.does_patch', { part: partName(one), text: quoted(one.text), layer });
  return one.position === undefined ? said : `${said}, ${t('change.only_at', { n: one.position })}`;
}

function partName(one: Change): string {
  const part = (one.name ?? '').replace(/^blocks\.\d+\./, '');
  const known = (PARTS as readonly string[]).includes(part) ? t(`change.part_${part.replace('.', '_')}`) : (one.name ?? '');
  return one.head === undefined ? known : `${known} ${one.head}`;
}
