// Builds into a folder of its own and compares it, file by file, with the one that ships. No difference, or exit code 1.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('..', import.meta.url));
const shipped = join(web, '../src/cutaway/serve/static');
const offline = join(web, '../src/cutaway/data/inspect/draw.js');
const fresh = mkdtempSync(join(tmpdir(), 'cutaway-web-'));
try {
  execFileSync('npx', ['vite', 'build', '--outDir', fresh, '--logLevel', 'error'], { cwd: web, stdio: 'inherit' });
  const files = (folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
      .sort();
  const all = [...new Set([...files(shipped), ...files(fresh)])];
  const read = (folder, file) => {
    try {
      return readFileSync(join(folder, file));
    } catch {
      return Buffer.from('missing');
    }
  };
  const different = all.filter((file) => !read(shipped, file).equals(read(fresh, file)));
  const again = join(fresh, 'offline');
  execFileSync('npx', ['vite', 'build', '--config', 'vite.offline.config.ts', '--outDir', again, '--logLevel', 'error'], { cwd: web, stdio: 'inherit' });
  if (!readFileSync(offline).equals(readFileSync(join(again, 'draw.js')))) different.push('draw.js');
  if (different.length) {
    console.error(`The built explorer does not match its source: ${different.join(', ')}. Run: npm run build`);
    process.exitCode = 1;
  } else {
    console.log(`${all.length} built files match their source.`);
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
