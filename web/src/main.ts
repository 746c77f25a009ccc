import { mount, type Component } from 'svelte';
import App from './App.svelte';
import { site } from './lib/site';
import { join } from './beside/sides.svelte';
import { moment } from './state/moment.svelte';
import { preferences } from './state/preferences.svelte';
import { askInstead } from './state/server.svelte';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';
import './style/present.css';
import './style/side.css';
import './style/print.css';

const target = document.getElementById('app')!;

function begin(): void {
  preferences.start(moment.start());
  join();
  open(App);
}
/** In the place of what the document holds until then: the name, where the header will have it. */
function open(what: Component): void {
  target.replaceChildren();
  mount(what, { target });
}

if (site) {
  // Only a static site fetches the engine: with a server the page stays as light as it was.
  const here = site;
  void import('./engine/site').then(({ openSite }) => {
    askInstead(openSite(here));
    begin();
  });
} else if (/^#\/remote\?/.test(location.hash)) {
  // A phone that turns the pages of a presentation: nothing of the explorer is asked for.
  preferences.start({});
  void import('./remote/Remote.svelte').then(({ default: Remote }) => open(Remote));
} else begin();
