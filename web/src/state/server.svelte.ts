/** Asking the server. A newer question aborts the older one; when the server goes away it is said, and asked again. */

import { table, type Table } from '../lib/binary';

export interface Failure {
  code: string;
  what: string;
  remedy: string;
  values: Record<string, number>;
}

export class Refused extends Error {
  constructor(readonly failure: Failure) {
    super(failure.what);
  }
}

export type Query = Record<string, string | number | number[] | null | undefined>;

class Connection {
  lost = $state(false);
  /** Goes up whenever the server has come back: every question is then asked anew. */
  epoch = $state(0);
  #timer: ReturnType<typeof setTimeout> | undefined;

  fail(): void {
    this.lost = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.retry(), 2000);
  }

  async retry(): Promise<void> {
    try {
      const response = await fetch('api/health');
      if (!response.ok) throw new Error();
      this.lost = false;
      this.epoch++;
    } catch {
      this.fail();
    }
  }
}

export const connection = new Connection();

export function address(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) search.append(name, String(one));
    else if (value !== null && value !== undefined) search.set(name, String(value));
  }
  const tail = search.toString();
  return `api/${path}${tail ? `?${tail}` : ''}`;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if ((error as Error).name !== 'AbortError') connection.fail();
    throw error;
  }
  if (response.ok) return response;
  let failure: Failure | undefined;
  try {
    failure = ((await response.json()) as { error?: Failure }).error;
  } catch {
    // not our JSON: a proxy, perhaps
  }
  throw new Refused(failure ?? { code: 'bug', what: `${response.status} ${response.statusText}`, remedy: '', values: {} });
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send(address(path, query), { signal })).json()) as T;
}

export async function getTable(path: string, query: Query = {}, signal?: AbortSignal): Promise<Table> {
  const response = await send(address(path, query), { signal });
  const { headers } = response;
  return table(await response.arrayBuffer(), headers.get('X-Type') ?? '', headers.get('X-Shape') ?? '');
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal };
  return (await (await send(`api/${path}`, init)).json()) as T;
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
export function keepAsking<T>(
  question: () => ((signal: AbortSignal) => Promise<T>) | null,
  options: { wait?: number; onforgotten?: () => void } = {},
): Answer<T> {
  const answer = new Answer<T>();
  let latest = 0;
  $effect(() => {
    void connection.epoch;
    const asked = question();
    const mine = ++latest;
    if (!asked) {
      answer.busy = false;
      return;
    }
    const control = new AbortController();
    answer.busy = true;
    const timer = setTimeout(async () => {
      try {
        const value = await asked(control.signal);
        if (mine !== latest) return; // an older answer never replaces a newer one
        answer.value = value;
        answer.failure = null;
        answer.busy = false;
      } catch (error) {
        if (mine !== latest || control.signal.aborted) return;
        if (error instanceof Refused && error.failure.code === 'forgotten' && options.onforgotten) {
          options.onforgotten();
          return;
        }
        answer.busy = false;
        if (error instanceof Refused) answer.failure = error.failure;
        else if (!connection.lost) answer.failure = { code: 'bug', what: String(error), remedy: '', values: {} };
      }
    }, options.wait ?? 0);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  });
  return answer;
}
