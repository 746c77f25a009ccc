import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { sealed } from './scripts/digest.mjs';
import { messages } from './scripts/messages.mjs';
import { moments } from './scripts/moments.mjs';
import { told } from './scripts/known.mjs';

// The built files are committed and ship in the Python package, so their names are fixed and nothing in them depends on
// the day or the machine: `npm run verify` builds again and compares; digest.json lets a machine without Node check too.
export default defineConfig({
  plugins: [svelte(), messages(), moments(), told(), sealed()],
  base: './',
  build: {
    outDir: '../src/cutaway/serve/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'assets/[name].js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
        // What most pages share is one file: as a dozen small ones, each asked for when a page opens, it came later.
        codeSplitting: { groups: [{ name: 'kit', test: /node_modules\/svelte\/|src\/(kit|lib|state)\/|virtual:messages/ }] },
      },
    },
  },
  worker: {
    format: 'es',
    rollupOptions: { output: { entryFileNames: 'assets/engine-[name].js', chunkFileNames: 'assets/engine-[name].js' } },
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
