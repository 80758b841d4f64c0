// node test.mjs [OPTIONS OF NODE]: bundles test/*.test.ts and runs them. Node 20 runs no TypeScript.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { build } from 'esbuild';

const tests = readdirSync('test').filter((name) => name.endsWith('.test.ts'));
const { metafile } = await build({
  entryPoints: tests.map((name) => `test/${name}`),
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  sourcemap: 'inline',
  tsconfig: 'tsconfig.json',
  outdir: 'build/test',
  metafile: true,
});
const bundles = Object.keys(metafile.outputs);
const options = ['--enable-source-maps', '--test', ...process.argv.slice(2), ...bundles];
process.exit(spawnSync(process.execPath, options, { stdio: 'inherit' }).status ?? 1);
