// node build.mjs [WIT [COMPONENT]]: bundles src/guest.ts with the SDK and builds the component.
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [wit = here('../../../wit/guest.wit'), out = 'pages-ts.wasm'] = process.argv.slice(2);
const bundle = here('build/guest.js');

await mkdir(here('build'), { recursive: true });
await build({
  entryPoints: [here('src/guest.ts')],
  bundle: true,
  format: 'esm',
  target: 'es2022',
  tsconfig: here('tsconfig.json'),
  // The host provides these imports.
  external: ['innkeeper:guest/*'],
  outfile: bundle,
});
const { component } = await componentize({
  sourcePath: bundle,
  witPath: wit,
  worldName: 'reconciler-guest',
  // Features that would import WASI, which the host does not provide to guests.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile(out, component);
