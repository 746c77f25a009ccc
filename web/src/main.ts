import { mount } from 'svelte';
import App from './App.svelte';
import { moment } from './state/moment.svelte';
import { preferences } from './state/preferences.svelte';
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';

preferences.start(moment.start());
mount(App, { target: document.getElementById('app')! });
