import { mount } from 'svelte';
import App from './App.svelte';
import { join } from './beside/sides.svelte';
import { moment } from './state/moment.svelte';
import { preferences } from './state/preferences.svelte';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';
import './style/present.css';
import './style/side.css';

const target = document.getElementById('app')!;
if (/^#\/remote\?/.test(location.hash)) {
  // A phone that turns the pages of a presentation: nothing of the explorer is asked for.
  preferences.start({});
  void import('./remote/Remote.svelte').then(({ default: Remote }) => mount(Remote, { target }));
} else {
  preferences.start(moment.start());
  join();
  mount(App, { target });
}
