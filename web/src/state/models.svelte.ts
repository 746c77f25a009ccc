/** The models that can be chosen, and the waking of one that is not in memory. */

import { get, post, Refused, type Failure } from './server.svelte';

export interface Model {
  name: string;
  where: 'here' | 'hub';
  bytes: number | null;
  layers: number;
  heads: number;
  width: number;
  context: number;
  vocabulary: number;
  parameters: number;
  awake: boolean;
}

interface Waking {
  name: string;
  phase: 'asleep' | 'fetching' | 'reading' | 'awake' | 'failed';
  file: string;
  done: number;
  total: number;
  error: Failure | null;
}

const LOOK = 250;

/** A model that could not be loaded, and why. */
export class NotOpened extends Refused {
  constructor(
    readonly model: string,
    failure: Failure,
  ) {
    super(failure);
  }
}

class Models {
  list = $state.raw<Model[]>([]);
  /** The model being woken, and how far it is. */
  waking = $state.raw<Waking | null>(null);

  async refresh(): Promise<void> {
    this.list = await get<Model[]>('models');
  }

  /** Have the model in memory on the server; throws what the server says when it cannot be. */
  async wake(name: string, signal: AbortSignal): Promise<void> {
    try {
      let now = await post<Waking>('models', { name }, signal);
      const slept = now.phase !== 'awake';
      while (now.phase !== 'awake') {
        if (now.phase === 'failed') throw new NotOpened(name, now.error!);
        this.waking = now;
        await new Promise((done) => setTimeout(done, LOOK));
        // A server that was started anew meanwhile knows nothing of it: begin again.
        now = now.phase === 'asleep' ? await post<Waking>('models', { name }, signal) : await get<Waking>('models/waking', { name }, signal);
      }
      if (slept) void this.refresh().catch(() => undefined);
    } finally {
      if (this.waking?.name === name) this.waking = null;
    }
  }
}

export const models = new Models();
