/** The server's addresses, answered here: the same questions, the same answers (docs/explorer.md lists them). */

import { hash, idOf, type Engine } from './engine';
import type { Json } from './numbers';
import { Refusal } from './refused';
import type { Run } from './run';
import { attention, headTable, heads, looking, tableOf, values } from './views/attention';
import { beams } from './views/beams';
import { change, changedRun, type Wanted } from './views/change';
import { explain } from './views/explain';
import { batch, loop, mixture, words } from './views/gallery';
import { expected, folded, looks, rowsOf, type Numbered } from './views/machine';
import { neuron, neurons } from './views/neurons';
import { ahead, branches, lens, predict } from './views/predict';
import { saliency } from './views/saliency';
import { sweep, type Pause } from './views/sweep';
import { walk, type StepSpec } from './views/walk';
import { matrix, neighbours, pictures } from './views/weights';
import { cache, writing } from './views/writing';

export interface Question {
  method: string;
  /** Without `api/`, with its query. */
  path: string;
  body: Json;
}

/** What was recorded in Python, by a hash of the question; undefined where it was not. */
export type Recorded = (hash: string) => Promise<Json | undefined>;

type Fields = { [name: string]: Json };
type Answer = Json | Numbered;

const WINDOW = 64;
const LONG = 256;

/** A query with its numbers read. */
class Given {
  constructor(readonly search: URLSearchParams) {}
  text(name: string, usual = ''): string {
    return this.search.get(name) ?? usual;
  }
  number(name: string, usual: number): number {
    return this.optional(name) ?? usual;
  }
  optional(name: string): number | null {
    const found = this.search.get(name);
    if (found === null || found === '') return null;
    if (!Number.isFinite(Number(found))) throw new Refusal('mistake', `${name}: '${found}' is no number.`);
    return Number(found);
  }
  all(name: string): string[] {
    return this.search.getAll(name);
  }
  numbers(name: string): number[] | null {
    const found = this.all(name).map(Number);
    return found.length ? found : null;
  }
}

type View = (engine: Engine, run: Run, given: Given, more: { body: Fields; key: string; pause: Pause; steps: () => Promise<StepSpec[]>; rest: string[] }) => Answer | Promise<Answer>;

const layerAndHead = (given: Given): [number, number] => [given.number('layer', 0), given.number('head', 0)];
const named = (engine: Engine, given: Given, name: string): number | null => (given.text(name) ? engine.tokenizer.named(given.text(name)) : null);

const VIEWS: Record<string, View> = {
  predict: (engine, run, given) => predict(engine, run, given.number('position', -1), { temperature: given.number('temperature', 1), top_k: given.number('top_k', 0) || null, top_p: given.number('top_p', 1) }, given.optional('dice')),
  attention: (_, run, given, { rest: [stage] }) => {
    const [layer, head] = layerAndHead(given);
    if (stage) return { numbers: headTable(run, `blocks.${run.layer(layer)}.attention.${stage}`, run.head(head)), shape: [run.length, run.length] };
    const position = given.optional('position');
    const usual = run.length <= LONG || position !== null ? 'scores,masked,weights' : 'scores,weights';
    return attention(run, layer, head, position, given.optional('attended'), given.text('parts', usual).split(','));
  },
  ahead: (engine, run, _, { pause }) => ahead(engine, run, pause),
  heads: (_, run, given) => heads(run, given.numbers('layer'), given.number('picture', 24)),
  looking: (_, run, given) => ({ ...looking(run, given.number('position', -1), given.number('key', 0)) }),
  lens: (engine, run, given) => {
    const first = run.position(Math.max(0, given.number('first', 0)));
    const position = given.optional('position');
    const shown = position === null ? Array.from({ length: Math.min(given.number('count', WINDOW), run.length - first) }, (_, i) => first + i) : [run.position(position)];
    const watch = given.all('watch').map((one) => engine.tokenizer.named(one));
    return lens(engine, run, shown, given.number('k', 5), watch, named(engine, given, 'token'));
  },
  walk: async (engine, run, given, { steps, rest: [step = ''] }) => walk(engine, run, await steps(), step, ...layerAndHead(given), given.number('position', -1), given.number('limit', 32)),
  explain: (_, run, given) => explain(run, given.text('name'), given.number('position', -1), given.number('column', 0), given.optional('head'), given.number('terms', 8)),
  values: (_, run, given) => values(run, given.text('name'), given.optional('position'), given.optional('head')),
  table: (_, run, given) => tableOf(run, given.text('name'), given.optional('head')),
  activations: (_, run, given) => tableOf(run, `blocks.${run.layer(given.number('layer', 0))}.mlp.activation`, null),
  machine: (engine, run, given, { rest: [part] }) => {
    const [first, count, names] = [given.number('first', 0), given.number('count', WINDOW), given.all('name')];
    if (part === 'folded') return folded(run, names, first, count, given.number('cells', 24));
    if (part === 'looks') return looks(run, names, given.number('k', 4));
    if (part === 'rows') return rowsOf(run, names, given.number('position', -1), first, count);
    return expected(engine, run, first, count);
  },
  neurons: (engine, run, given) => neurons(engine, run, given.numbers('layer'), given.number('top', 10), given.optional('position')),
  neuron: (engine, run, given) => neuron(engine, run, given.number('layer', 0), given.number('neuron', 0)),
  writing: (engine, run, given, { pause }) =>
    writing(engine, run, { temperature: given.number('temperature', 1), top_k: given.number('top_k', 40) || null, top_p: given.number('top_p', 1) }, given.number('seed', 1), given.number('max_tokens', 20), given.number('k', 10), pause),
  cache: (engine, run, given, { pause }) => cache(engine, run, given.number('max_tokens', 10), pause),
  beams: (engine, run, given, { pause }) => beams(engine, run, given.number('beams', 4), given.number('max_tokens', 12), given.number('length_penalty', 1), pause),
  saliency: (engine, run, given, { pause }) => saliency(engine, run, given.number('target', run.length), given.text('method', 'gradient'), given.number('steps', 16), named(engine, given, 'against'), pause),
  change: (engine, run, _, { body, key }) => change(engine, key, run, (body.changes ?? []) as unknown as Wanted[], Number(body.position ?? -1), Number(body.k ?? 10)),
  sweep: (engine, run, given, { pause }) =>
    sweep(
      engine,
      run,
      {
        corrupted: given.text('corrupted'),
        what: given.text('what', 'residual'),
        how: given.text('how', 'patch'),
        token: named(engine, given, 'token'),
        against: named(engine, given, 'against'),
        metric: given.text('metric'),
        position: given.number('position', -1),
        layers: given.numbers('layer'),
        units: given.numbers('unit'),
      },
      pause,
    ),
};

/** A question in one form, whoever asks it: the run by its tokens, the query in order. `cutaway.serve.site` writes the same. */
export function canonical({ method, path, body }: Question, ids: readonly number[] | null): string {
  const [address = '', search = ''] = path.split('?', 2);
  const query = [...new URLSearchParams(search)].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([name, value]) => `${name}=${value}`);
  const place = ids ? address.replace(/^traces\/[^/]+/, `traces/${ids.join(' ')}`) : address;
  return `${method} ${place}?${query.join('&')}${method === 'POST' ? ` ${ordered(body)}` : ''}`;
}

/** JSON with its keys in order and without spaces. */
function ordered(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(ordered).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).filter(([, one]) => one !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, one]) => `${JSON.stringify(name)}:${ordered(one)}`).join(',')}}`;
}

export async function answer(engine: Engine, question: Question, recorded: Recorded, pause: Pause): Promise<Answer> {
  const [address = '', search = ''] = question.path.split('?', 2);
  const [room = '', key = '', view = '', ...rest] = address.split('/');
  const given = new Given(new URLSearchParams(search));
  const body = (question.body ?? {}) as Fields;
  const numbers = (of: Json | undefined): number[] => ((of ?? []) as number[]).map(Number);
  const told = async (ids: readonly number[] | null): Promise<Json> => {
    // What kind of head each is does not depend on the text.
    const asked = view === 'roles' ? canonical({ ...question, path: `roles?${search}` }, null) : canonical(question, ids);
    const found = await recorded(hash(asked));
    if (found === undefined) throw new Refusal('not_in_site', 'This needs Python, and was not recorded for this text. Install Cutaway, and open the same moment there.');
    return found;
  };
  if (room === 'tokens') return [...engine.tokenizer.encode(String(body.text ?? '')), ...numbers(body.ids)].map((id) => engine.token(id)) as Json;
  if (room === 'branches') return branches(engine, String(body.text ?? ''), (body.paths ?? []) as number[][]);
  if (room === 'traces' && !view) {
    const ids = engine.ids(String(body.text ?? ''), numbers(body.more));
    const wanted = (body.changes ?? []) as unknown as Wanted[];
    const plain = engine.run(ids);
    const [name, run] = changedRun(engine, idOf(ids), plain, wanted);
    return engine.describe(name, run);
  }
  if (room === 'traces') {
    const run = engine.known(key);
    const steps = async (): Promise<StepSpec[]> => ((await recorded(hash(`GET models/map?name=${engine.name}`))) as unknown as { steps: StepSpec[] }).steps;
    return (await VIEWS[view]?.(engine, run, given, { body, key, pause, steps, rest })) ?? told(run.ids);
  }
  if (room === 'gallery') {
    if (key === 'words') return words(engine, ...layerAndHead(given));
    if (key === 'mixture') return mixture(engine);
    if (key === 'loop') return loop(engine, given.number('seed', 1), pause);
    if (key === 'batch') return batch(engine);
  }
  if (room === 'weights' && key === 'neighbours') return neighbours(engine, given.text('word'), given.number('k', 8));
  if (room === 'weights' && key === 'matrix') return matrix(engine.model.weights, engine.name, given.text('name'), given.number('size', 64), given.number('bins', 61));
  if (room === 'weights' && key === 'pictures') return pictures(engine.model.weights, engine.name, given.all('name'), given.number('size', 16));
  return told(null);
}
