/** A static site: what the pages would ask the server is asked of the engine, in a worker beside the page. */

import type { Site } from '../lib/site';
import type { Asked, Told } from './worker';

type Waiting = { done: (response: Response) => void; failed: (error: unknown) => void };

/** Begins to load the model; gives what asks it, in the form that `fetch` has. */
export function openSite(site: Site): (path: string, init: RequestInit) => Promise<Response> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
  const waiting = new Map<number, Waiting>();
  let last = 0;
  const tell = (asked: Asked): void => worker.postMessage(asked);
  worker.onmessage = ({ data }: MessageEvent<Told>) => {
    const asked = waiting.get(data.id);
    waiting.delete(data.id);
    asked?.done(responseOf(data));
  };
  worker.onerror = (event) => {
    const error = { code: 'bug', what: event.message, remedy: '', values: { what: event.message } };
    for (const asked of waiting.values()) asked.done(refused(error));
    waiting.clear();
  };
  tell({ start: new URL('site/', document.baseURI).href, bytes: site.bytes });
  return (path, init) =>
    new Promise((done, failed) => {
      const { signal } = init;
      if (signal?.aborted) return failed(signal.reason);
      const id = ++last;
      waiting.set(id, { done, failed });
      signal?.addEventListener('abort', () => {
        if (!waiting.delete(id)) return;
        tell({ id, abort: true });
        failed(signal.reason);
      });
      tell({ id, question: { method: init.method ?? 'GET', path: path.replace(/^api\//, ''), body: typeof init.body === 'string' ? JSON.parse(init.body) : null } });
    });
}

const refused = (error: unknown): Response => new Response(JSON.stringify({ error }), { status: 422 });

function responseOf(told: Told): Response {
  if ('failure' in told) return refused(told.failure);
  if ('json' in told) return new Response(told.json);
  return new Response(told.numbers, { headers: { 'X-Type': 'float32', 'X-Shape': told.shape.join(',') } });
}
