import { mount } from 'svelte';
import App from './App.svelte';
import { site } from './lib/site';
import { moment } from './state/moment.svelte';
import { preferences } from './state/preferences.svelte';
import { askInstead } from './state/server.svelte';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';

function begin(): void {
  preferences.start(moment.start());
  mount(App, { target: document.getElementById('app')! });
}

// Only a static site fetches the engine: with a server the page stays as light as it was.
if (site) {
  const here = site;
  void import('./engine/site').then(({ openSite }) => {
    askInstead(openSite(here));
    begin();
  });
} else begin();
