// node test.mjs [OPTIONS OF NODE]: bundles test/*.test.ts and runs them, with the modules of
// test/host in place of the imports of a component. Node 20 runs no TypeScript.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { build } from 'esbuild';

const host = ['cluster', 'clock', 'log'].map((name) => [
  `innkeeper:guest/${name}@0.1.0`,
  resolve(`test/host/${name}.ts`),
]);
const tests = readdirSync('test').filter((name) => name.endsWith('.test.ts'));
const { metafile } = await build({
  entryPoints: tests.map((name) => `test/${name}`),
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'inline',
  tsconfig: 'tsconfig.json',
  alias: Object.fromEntries(host),
  outdir: 'build/test',
  metafile: true,
});
const bundles = Object.keys(metafile.outputs);
const options = ['--enable-source-maps', '--test', ...process.argv.slice(2), ...bundles];
process.exit(spawnSync(process.execPath, options, { stdio: 'inherit' }).status ?? 1);
