/** Asking the server, or in a static site the engine beside the page. A newer question aborts the older one; when the server goes away it is said, and no question is lost. */

import { table, type Table } from '../lib/binary';
import type { Values } from '../lib/catalogue';

export interface Failure {
  code: string;
  what: string;
  remedy: string;
  values: Values;
}

export class Refused extends Error {
  constructor(readonly failure: Failure) {
    super(failure.what);
  }
}

export type Query = Record<string, string | number | boolean | (string | number)[] | null | undefined>;

const PAUSE = 1000;

class Connection {
  lost = $state(false);
  /** Have the server make again what it has forgotten: the text being shown, in its model. Set by the moment. */
  remake: () => Promise<void> = () => Promise.resolve();
  #waiting: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** The server cannot be reached: said, and tried until it can. */
  back(): Promise<void> {
    this.lost = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.retry(), PAUSE);
    return new Promise((done) => this.#waiting.push(done));
  }

  async retry(): Promise<void> {
    clearTimeout(this.#timer);
    if (!(await reachable())) {
      this.#timer = setTimeout(() => void this.retry(), PAUSE);
      return;
    }
    this.lost = false;
    for (const done of this.#waiting.splice(0)) done();
  }
}

export const connection = new Connection();

/** Who answers: the server, unless another is named before the first question. */
let ask: (path: string, init: RequestInit) => Promise<Response> = (path, init) => fetch(path, init);
export const askInstead = (other: typeof ask): void => void (ask = other);
/** Ask once, whoever answers. */
export const asked = (path: string): Promise<Response> => ask(path, {});

export const reachable = (): Promise<boolean> => asked('api/health').then(
  (response) => response.ok,
  () => false,
);

export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) search.append(name, String(one));
    else if (value !== null && value !== undefined) search.set(name, String(value));
  }
  const tail = search.toString();
  return `api/${path}${tail ? `?${tail}` : ''}`;
}

/** Ask, and read the answer. A question that finds no server waits until there is one, and is then asked again. */
async function send<T>(path: string, init: RequestInit, read: (response: Response) => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const response = await ask(path, init);
      if (response.ok) return await read(response);
      throw new Refused(await refusal(response));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // how fetch says that there was no answer, or half of one
      await connection.back();
      init.signal?.throwIfAborted();
    }
  }
}

async function refusal(response: Response): Promise<Failure> {
  try {
    const { error } = (await response.json()) as { error?: Failure };
    if (error) return error;
  } catch (error) {
    if (error instanceof TypeError) throw error;
    // not our JSON: a proxy, perhaps
  }
  const what = `${response.status} ${response.statusText}`;
  return { code: 'bug', what, remedy: '', values: { what } };
}

const GONE = new Set(['forgotten', 'asleep']);

/** Ask; what the server has forgotten meanwhile (it was started anew, perhaps) is made again first. */
export async function kept<T>(question: () => Promise<T>, remake: () => Promise<unknown> = () => connection.remake()): Promise<T> {
  for (let tries = 3; ; tries--) {
    try {
      return await question();
    } catch (error) {
      if (!(error instanceof Refused) || !GONE.has(error.failure.code) || !tries) throw error;
      await remake();
    }
  }
}

const json = <T>(response: Response): Promise<T> => response.json() as Promise<T>;

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return send<T>(address(path, query), { signal }, json);
}

export function getTable(path: string, query: Query = {}, signal?: AbortSignal): Promise<Table> {
  return send(address(path, query), { signal }, async (response) => {
    const { headers } = response;
    return table(await response.arrayBuffer(), headers.get('X-Type') ?? '', headers.get('X-Shape') ?? '');
  });
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal };
  return send<T>(`api/${path}`, init, json);
}

const pending = new Set<() => void>();

/** Give up every question that is still open; the server stops working on it inside the next block. */
export function cancel(): void {
  for (const giveUp of [...pending]) giveUp();
}

/** The answer to a question that changes: the last one stays until the next has come. */
export class Answer<T> {
  value = $state.raw<T | null>(null);
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
}

/**
 * Keeps asking as the question changes (it is read inside an effect; null asks nothing). Call it while a component is
 * being made. `wait` milliseconds let a quick hand finish.
 */
export function keepAsking<T>(question: () => ((signal: AbortSignal) => Promise<T>) | null, options: { wait?: number; remake?: () => Promise<unknown> } = {}): Answer<T> {
  const answer = new Answer<T>();
  let latest = 0;
  $effect(() => {
    const asked = question();
    const mine = ++latest;
    if (!asked) {
      answer.busy = false;
      return;
    }
    const control = new AbortController();
    answer.busy = true;
    const giveUp = (): void => {
      clearTimeout(timer);
      control.abort();
      pending.delete(giveUp);
      answer.busy = false;
      answer.failure = { code: 'cancelled', what: '', remedy: '', values: {} };
    };
    pending.add(giveUp);
    const timer = setTimeout(async () => {
      try {
        const value = await kept(() => asked(control.signal), options.remake);
        if (mine !== latest) return; // an older answer never replaces a newer one
        answer.value = value;
        answer.failure = null;
        answer.busy = false;
      } catch (error) {
        if (mine !== latest || control.signal.aborted) return;
        answer.busy = false;
        const what = String(error);
        answer.failure = error instanceof Refused ? error.failure : { code: 'bug', what, remedy: '', values: { what } };
      } finally {
        pending.delete(giveUp);
      }
    }, options.wait ?? 0);
    return () => {
      pending.delete(giveUp);
      clearTimeout(timer);
      control.abort();
    };
  });
  return answer;
}
