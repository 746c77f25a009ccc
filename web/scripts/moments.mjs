// A Vite plugin: leaves moments.json beside the built files: what the tour, the examples of tasks and the first visit ask
// about, so that `cutaway explore --export` can record it (the sources of the pages are not part of the Python package).
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../src/', import.meta.url));
const json = (path) => JSON.parse(readFileSync(source + path, 'utf8'));

export function moments() {
  return {
    name: 'moments',
    apply: 'build',
    generateBundle() {
      const files = readdirSync(`${source}tour`).filter((name) => /^\d+-.*\.json$/.test(name)).sort();
      const tour = files.map((file) => {
        const { page, place, facts = {} } = json(`tour/${file}`);
        return { name: /^\d+-(.*)\.json$/.exec(file)[1], page, place, facts };
      });
      const examples = {};
      for (const language of readdirSync(`${source}messages`).sort()) {
        for (const [key, text] of Object.entries(json(`messages/${language}/tasks.json`))) {
          const task = /^example_(\w+)_\d+$/.exec(key)?.[1];
          if (task) (examples[task] ??= []).includes(text) || examples[task].push(text);
        }
      }
      const made = { beginning: json('lib/beginning.json').text, tour, examples };
      this.emitFile({ type: 'asset', fileName: 'moments.json', source: `${JSON.stringify(made, null, 1)}\n` });
    },
  };
}
