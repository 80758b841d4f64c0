// node build.mjs [WIT [COMPONENT]]: makes a component of guest.js.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { componentize } from '@bytecodealliance/componentize-js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [wit = here('../../../wit/guest.wit'), out = 'labels-js.wasm'] = process.argv.slice(2);

const { component } = await componentize({
  sourcePath: here('guest.js'),
  witPath: wit,
  worldName: 'reconciler-guest',
  // All that would import WASI, which a guest does not have.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile(out, component);
