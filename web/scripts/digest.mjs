// One digest over a folder's files: sha256 over the lines "sha256 of the file, two spaces, its path", sorted by path.
// tests/web/test_built.py computes the same, so that machines without Node know when the built files are out of date.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('..', import.meta.url));

const sha256 = (data) => createHash('sha256').update(data).digest('hex');

export function files(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));
}

export function digest(folder, names) {
  const lines = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return sha256(lines.map((name) => `${sha256(readFileSync(join(folder, name)))}  ${name}\n`).join(''));
}

/** What the built files are made of; tests of the source are not. */
export function source() {
  const inside = files(join(web, 'src')).filter((name) => !name.endsWith('.test.ts'));
  return ['index.html', 'package.json', 'package-lock.json', 'svelte.config.js', 'tsconfig.json', 'vite.config.ts', 'vite.offline.config.ts', ...inside.map((name) => `src/${name}`)];
}

/** A Vite plugin: leaves digest.json beside the built files, which says what they were made of and what was made. */
export function sealed() {
  let madeOf = '';
  return {
    name: 'sealed',
    apply: 'build',
    // Before anything is read: a file that changes while the build runs makes the build out of date, not the digest.
    buildStart() {
      madeOf = digest(web, source());
    },
    writeBundle(options) {
      const made = files(options.dir).filter((name) => name !== 'digest.json');
      writeFileSync(join(options.dir, 'digest.json'), `${JSON.stringify({ source: madeOf, built: digest(options.dir, made) }, null, 2)}\n`);
    },
  };
}
