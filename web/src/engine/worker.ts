/** The engine in a thread of its own: loads the model beside the page, and answers what the server would be asked. */

import { answer, type Question } from './answers';
import { Engine } from './engine';
import type { Json } from './numbers';
import { Refusal, type Failure } from './refused';
import { Weights, fetched, type Description } from './weights';

export type Asked = { id: number; question: Question } | { id: number; abort: true } | { start: string; bytes: number };
export type Told = { id: number; json: string } | { id: number; numbers: ArrayBuffer; shape: number[] } | { id: number; failure: Failure };

interface Waking {
  [name: string]: Json;
  name: string;
  phase: 'fetching' | 'reading' | 'awake' | 'failed';
  file: string;
  done: number;
  total: number;
  error: Json;
}

const scope = self as unknown as { onmessage: ((event: MessageEvent<Asked>) => void) | null; postMessage(told: Told, transfer?: Transferable[]): void };
/** How long somebody who wants the model waits for it before being told how far it is. */
const PATIENCE = 300;

let site = '';
let engine: Engine | null = null;
let ready: Promise<void> = new Promise(() => undefined);
const waking: Waking = { name: '', phase: 'fetching', file: 'weights.bin', done: 0, total: 0, error: null };
const aborted = new Set<number>();
const answers = new Map<string, Promise<Json | undefined>>();
let known: Set<string> = new Set();
let busySince = 0;
let open = 0;

async function load(base: string, bytes: number): Promise<void> {
  site = base;
  waking.total = bytes;
  try {
    const [about, buffer] = await Promise.all([
      fetch(`${base}model.json`).then((response) => response.json() as Promise<Description>),
      fetched(`${base}weights.bin`, bytes, (done) => (waking.done = done)),
    ]);
    waking.phase = 'reading';
    known = new Set(about.recorded);
    engine = new Engine(about, new Weights(about.tensors, buffer));
    waking.name = about.model;
    waking.phase = 'awake';
  } catch (error) {
    waking.phase = 'failed';
    waking.error = { code: 'site_broken', what: String(error), remedy: '', values: { what: String(error) } };
  }
}

/** What was recorded in Python. */
function recorded(hash: string): Promise<Json | undefined> {
  if (!known.has(hash)) return Promise.resolve(undefined);
  let found = answers.get(hash);
  if (!found) {
    found = fetch(`${site}recorded/${hash}.json`).then((response) => {
      if (!response.ok) throw new TypeError(`${response.status} ${response.statusText}`);
      return response.json() as Promise<Json>;
    });
    found.catch(() => answers.delete(hash));
    answers.set(hash, found);
  }
  return found;
}

const breath = (): Promise<void> => new Promise((done) => setTimeout(done));

async function reply(id: number, question: Question): Promise<Told> {
  const pause = async (): Promise<void> => {
    await breath();
    if (aborted.has(id)) throw new Refusal('outdated', 'A newer question took the place of this one.');
  };
  const [address] = question.path.split('?', 1);
  const told = (json: Json): Told => ({ id, json: JSON.stringify(json) });
  if (address === 'health') return told({ version: engine?.about.version ?? '' });
  if (address === 'progress') return told({ busy: open > 1, share: null, seconds: open > 1 ? (performance.now() - busySince) / 1000 : 0 });
  if (address === 'models/waking' || (address === 'models' && question.method === 'POST')) {
    if (address === 'models' && waking.phase === 'failed') {
      waking.phase = 'fetching'; // tried again
      ready = load(site, waking.total);
    }
    await Promise.race([ready, new Promise((done) => setTimeout(done, PATIENCE))]);
    const wanted = address === 'models' ? String((question.body as { name?: Json }).name) : (new URLSearchParams(question.path.split('?')[1]).get('name') ?? '');
    if (waking.phase !== 'awake') return told({ ...waking, name: wanted });
    if (wanted === engine!.name) return told(waking);
    return told({ ...waking, name: wanted, phase: 'failed', error: { code: 'no_such_model_in_site', what: `This page has the model ${engine!.name} only.`, remedy: '', values: { name: wanted, model: engine!.name } } });
  }
  await ready;
  if (!engine) throw new Refusal('site_broken', String((waking.error as { what: string }).what), { what: String((waking.error as { what: string }).what) });
  await pause(); // what was given up while it waited is not begun
  const found = await answer(engine, question, recorded, pause);
  if (found === null || typeof found !== 'object' || !('numbers' in found) || !(found.numbers instanceof Float32Array)) return told(found as Json);
  return { id, numbers: found.numbers.slice().buffer, shape: found.shape as number[] };
}

scope.onmessage = async ({ data }) => {
  if ('start' in data) {
    ready = load(data.start, data.bytes);
    return;
  }
  if ('abort' in data) {
    aborted.add(data.id);
    return;
  }
  if (!open++) busySince = performance.now();
  try {
    const told = await reply(data.id, data.question);
    scope.postMessage(told, 'numbers' in told ? [told.numbers] : []);
  } catch (error) {
    const what = String(error);
    const failure = error instanceof Refusal ? error.failure : { code: 'bug', what, remedy: '', values: { what } };
    scope.postMessage({ id: data.id, failure });
  } finally {
    open--;
    aborted.delete(data.id);
  }
};
