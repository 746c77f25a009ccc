// What a tour may name: written beside the built files, so that a tour somebody wrote is checked against what there is.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { files } from './digest.mjs';

const src = fileURLToPath(new URL('../src', import.meta.url));
const folders = (at) => readdirSync(join(src, at), { withFileTypes: true }).filter((one) => one.isDirectory()).map((one) => one.name).sort();

/** The names of what can be pointed at, in the files of a folder: data-tour="…", or tour="…" of a panel. */
function points(at) {
  const found = files(join(src, at)).filter((name) => name.endsWith('.svelte')).flatMap((name) => [...readFileSync(join(src, at, name), 'utf8').matchAll(/\b(?:data-)?tour="(\w+)"/g)].map((one) => one[1]));
  return [...new Set(found)].sort();
}

export function known() {
  const pages = folders('pages');
  const steps = readdirSync(join(src, 'tour')).filter((name) => /^\d+-.*\.json$/.test(name)).sort();
  const step = (name) => JSON.parse(readFileSync(join(src, 'tour', name), 'utf8'));
  return {
    languages: folders('messages').sort((a, b) => (a === 'en' ? -1 : b === 'en' ? 1 : a < b ? -1 : 1)),
    pages,
    points: Object.fromEntries([['', points('shell')], ...pages.map((page) => [page, points(`pages/${page}`)])]),
    steps: Object.fromEntries(steps.map((name) => [/\d+-([\w-]+)\.json$/.exec(name)[1], { page: step(name).page }])),
  };
}

/** A Vite plugin: leaves tour.json beside the built files. Before `sealed`, which looks at all of them. */
export function told() {
  return {
    name: 'known',
    apply: 'build',
    writeBundle(options) {
      writeFileSync(join(options.dir, 'tour.json'), `${JSON.stringify(known(), null, 1)}\n`);
    },
  };
}
