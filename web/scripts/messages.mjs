// The message catalogue as the pages get it: every key once, and each language's messages in that order. As JSON files side
// by side they would say every key three times, which is a fifth of them.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MODULE = 'virtual:messages', HERE = `\0${MODULE}`, BETWEEN = '\t';
const folder = fileURLToPath(new URL('../src/messages', import.meta.url));
const list = (at) => readdirSync(at).sort();
const read = (language, part) => JSON.parse(readFileSync(join(folder, language, part), 'utf8'));

/** A text that is taken apart again; none of them may hold what stands between them. */
function joined(texts) {
  const wrong = texts.find((text) => text.includes(BETWEEN) || text.includes('\r'));
  if (wrong !== undefined) throw new Error(`A message holds a tab: ${wrong}`);
  return JSON.stringify(texts.join(BETWEEN));
}

/** A Vite plugin: the module `virtual:messages`. */
export function messages() {
  return {
    name: 'messages',
    resolveId: (id) => (id === MODULE ? HERE : null),
    load(id) {
      if (id !== HERE) return null;
      const parts = list(join(folder, 'en'));
      const keys = parts.flatMap((part) => Object.keys(read('en', part)).map((key) => [part, key]));
      for (const language of list(folder)) for (const part of list(join(folder, language))) this.addWatchFile?.(join(folder, language, part));
      const written = list(folder).map((language) => {
        const there = Object.fromEntries(list(join(folder, language)).map((part) => [part, read(language, part)]));
        const missing = keys.find(([part, key]) => there[part]?.[key] === undefined);
        if (missing) throw new Error(`messages/${language}/${missing[0]} has no ${missing[1]}`);
        const more = Object.entries(there).find(([part, all]) => Object.keys(all).length !== keys.filter(([of]) => of === part).length);
        if (more) throw new Error(`messages/${language}/${more[0]} has messages that the English one has not`);
        return `${JSON.stringify(language)}: ${joined(keys.map(([part, key]) => there[part][key]))}`;
      });
      const names = parts.map((part) => [part.replace(/\.json$/, ''), ...Object.keys(read('en', part))]);
      return `export const keys = [${names.map(joined).join(', ')}];\nexport const written = { ${written.join(', ')} };`;
    },
  };
}
