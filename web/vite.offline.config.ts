import { defineConfig } from 'vite';

// The script of the offline pages and of the notebook widget: one function, `draw`, in a file that ships in the package.
export default defineConfig({
  build: {
    outDir: '../src/cutaway/data/inspect',
    emptyOutDir: false, // page.css is there, too
    target: 'es2022',
    minify: false,
    reportCompressedSize: false,
    lib: { entry: 'src/offline/draw.ts', formats: ['iife'], name: 'draw', fileName: () => 'draw.js' },
  },
});
