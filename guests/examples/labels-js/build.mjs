// node build.mjs [WIT [COMPONENT]]: builds the component from guest.js.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { componentize } from '@bytecodealliance/componentize-js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [wit = here('../../../wit/guest.wit'), out = 'labels-js.wasm'] = process.argv.slice(2);

const { component } = await componentize({
  sourcePath: here('guest.js'),
  witPath: wit,
  worldName: 'reconciler-guest',
  // Features that would import WASI, which the host does not provide to guests.
  disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
});
await writeFile(out, component);
