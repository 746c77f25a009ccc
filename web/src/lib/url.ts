/** The state of the explorer as an address, and back: a link restores the exact view. */

/** The other side, where it differs from this one. */
export interface Beside {
  text?: string;
  model?: string;
  /** The token chosen there, where it is none of this side's. */
  position?: number;
}

export interface Place {
  page: string;
  model: string;
  text: string;
  /** Ids of the tokens picked after the text. */
  more: number[];
  /** null: the last token. */
  position: number | null;
  layer: number;
  head: number;
  /** The name of a step of the walk; empty: the first. */
  step: string;
  /** The step of the guided tour being shown; none without. */
  tour?: string;
  /** Whether the tour is taken on the reader's own text. */
  own?: boolean;
  /** Large, one thing at a time, for a class to see. */
  present?: boolean;
  /** What stands on the other side: another text, another model; what it does not say is the same on both. */
  beside?: Beside | null;
  /** What only this page knows. */
  settings: Record<string, string>;
}

const BESIDE = ['text', 'model', 'position'] as const;

/** Links once held a step by its number among these. Nothing is ever added or moved here. */
const NUMBERED = [
  '', 'token', 'embedding', 'position', 'entry', 'attention_norm', 'made', 'split', 'scores', 'mask', 'softmax', 'mix', 'merge', 'projection',
  'attention_residual', 'mlp_norm', 'widen', 'activation', 'narrow', 'mlp_residual', 'final_norm', 'logits', 'choice',
];
/** The step that a link means; a number too large meant the last. */
function step(given: string): string {
  if (/^\d{1,9}$/.test(given)) return NUMBERED[Number(given)] ?? NUMBERED.at(-1)!;
  return given === 'whole' ? '' : given;
}

const OWN = new Set(['model', 'text', 'more', 'position', 'layer', 'head', 'step', 'tour', 'own', 'present', 'beside', 'text2', 'model2', 'position2', 'side', 'lang', 'theme']);

export function write(place: Place): string {
  const query = new URLSearchParams();
  if (place.model !== 'builtin') query.set('model', place.model);
  query.set('text', place.text);
  if (place.more.length) query.set('more', place.more.join('.'));
  if (place.position !== null) query.set('position', String(place.position));
  for (const name of ['layer', 'head'] as const) if (place[name]) query.set(name, String(place[name]));
  if (step(place.step)) query.set('step', place.step);
  if (place.tour) query.set('tour', place.tour);
  if (place.own) query.set('own', '1');
  if (place.present) query.set('present', '1');
  if (place.beside) {
    query.set('beside', '1');
    for (const name of BESIDE) if (place.beside[name] !== undefined) query.set(`${name}2`, String(place.beside[name]));
  }
  for (const [name, value] of Object.entries(place.settings).sort(([a], [b]) => (a < b ? -1 : 1))) query.set(name, value);
  return `#/${place.page}?${query}`;
}

/** What an address says; a thing it does not mention, or says wrongly, is as in `usual`. */
export function read(hash: string, usual: Place): Place & { lang?: string; theme?: string } {
  const [, page = '', rest = ''] = /^#?\/?([\w-]*)\??(.*)$/s.exec(hash) ?? [];
  const query = new URLSearchParams(rest);
  const settings: Record<string, string> = {};
  for (const [name, value] of query) if (!OWN.has(name)) settings[name] = value;
  const whole = (name: string): number | null => {
    const value = query.get(name);
    return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : null;
  };
  const ids = query.get('more') ?? '';
  return {
    page: page || usual.page,
    model: query.get('model') ?? usual.model,
    text: query.get('text') ?? usual.text,
    more: /^\d{1,9}(\.\d{1,9})*$/.test(ids) ? ids.split('.').map(Number) : [],
    position: whole('position'),
    layer: whole('layer') ?? 0,
    head: whole('head') ?? 0,
    step: step(query.get('step') ?? usual.step),
    tour: query.get('tour') ?? '',
    own: query.get('own') === '1',
    present: query.get('present') === '1',
    beside: query.get('beside') === '1' ? { text: query.get('text2') ?? undefined, model: query.get('model2') ?? undefined, position: whole('position2') ?? undefined } : null,
    settings,
    lang: query.get('lang') ?? undefined,
    theme: query.get('theme') ?? undefined,
  };
}
