/** How far the server is with what the page waits for. Asked only while somebody has been waiting for a moment. */

import { asked } from './server.svelte';

interface Working {
  busy: boolean;
  /** From 0 to 1; null where nobody knows. */
  share: number | null;
  seconds: number;
}

const PATIENCE = 500;
const LOOK = 400;

class Progress {
  now = $state.raw<Working | null>(null);

  /** Seconds that are left, when enough has been done to tell. */
  get left(): number | null {
    const { share, seconds } = this.now ?? { share: null, seconds: 0 };
    return share && share > 0.05 ? Math.ceil((seconds * (1 - share)) / share) : null;
  }

  /** Look until told to stop. */
  watch(): () => void {
    let timer = setTimeout(look, PATIENCE);
    const set = (now: Working | null): void => void (this.now = now);
    let stopped = false;
    async function look(): Promise<void> {
      try {
        const found = (await (await asked('api/progress')).json()) as Working;
        if (!stopped) set(found);
      } catch {
        if (!stopped) set(null); // the question itself says that the server is away
      }
      if (!stopped) timer = setTimeout(look, LOOK);
    }
    return () => {
      stopped = true;
      clearTimeout(timer);
      set(null);
    };
  }
}

export const progress = new Progress();
