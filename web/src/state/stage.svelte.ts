/** A presentation and its remote control: the page on the wall tells what it shows, and hears next, back and play. */

import { post } from './server.svelte';

export type Order = 'next' | 'back' | 'play';
export interface Shown {
  title: string;
  at: number;
  all: number;
  part: string;
  notes: string;
  next: string;
  language: string;
}

const KEPT = 'cutaway.stage';

interface Begun {
  token: string;
  /** Where a phone in the network finds the remote; null: only this machine does. */
  address: string | null;
}

/** What this tab remembers, so that the remote goes on after the page was loaded anew. */
function kept(): Begun | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? 'null') as Begun | null;
  } catch {
    return null;
  }
}
function keep(begun: Begun | null): void {
  try {
    if (begun) sessionStorage.setItem(KEPT, JSON.stringify(begun));
    else sessionStorage.removeItem(KEPT);
  } catch {
    // a browser that keeps nothing still works
  }
}

class Stage {
  begun = $state.raw<Begun | null>(kept());
  /** Whether orders can come. */
  listening = $state(false);

  /** The link that makes a second browser the remote. Whoever has it can turn the pages, and nothing more. */
  link = $derived(this.begun ? `${this.begun.address ?? location.href.replace(/#.*$/s, '')}#/remote?token=${this.begun.token}` : '');

  async begin(): Promise<void> {
    if (!this.begun) this.begun = await post<Begun>('stage', {});
    keep(this.begun);
  }
  /** Obey until told to stop. */
  listen(obey: (order: Order) => void): () => void {
    if (!this.begun) return () => undefined;
    const orders = new EventSource(`api/stage/${this.begun.token}/orders`);
    orders.onopen = () => (this.listening = true);
    orders.onmessage = ({ data }) => obey((JSON.parse(data as string) as { do: Order }).do);
    // The browser tries again by itself, unless it was refused, or is about to leave this page.
    orders.onerror = () => {
      this.listening = false;
      if (orders.readyState === EventSource.CLOSED) void this.#over().then((over) => over && this.forget());
    };
    return () => {
      this.listening = false;
      orders.close();
    };
  }
  /** Whether the server knows nothing of the presentation any more. */
  #over(): Promise<boolean> {
    return fetch(`api/stage/${this.begun?.token}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' }).then(
      (answer) => answer.status >= 400 && answer.status < 500,
      () => false,
    );
  }
  forget(): void {
    this.begun = null;
    keep(null);
  }
  tell(shown: Shown): void {
    if (this.begun) void fetch(`api/stage/${this.begun.token}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(shown) }).catch(() => undefined);
  }
}

export const stage = new Stage();
