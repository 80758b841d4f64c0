// The package as its users install it: packed, and installed where no sources of it are. The tools
// come from the folder above, as from a registry; npm asks none.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';

const GUEST = `
import { complete, describe, kind } from '@innkeeper/guest';
import type { Guest, KubeObject } from '@innkeeper/guest';
import { run } from '@innkeeper/guest/testing';

interface Greeting extends KubeObject {
  spec: { text: string };
}
interface ConfigMap extends KubeObject {
  data: Record<string, string>;
}
const GREETING = kind<Greeting>('example.com/v1', 'Greeting', 'greetings');
const CONFIG_MAP = kind<ConfigMap>('v1', 'ConfigMap', 'configmaps');

const greeter: Guest<Greeting> = {
  manifest: describe(GREETING, 'greeter', '1.0.0').owns(CONFIG_MAP).manifest(),
  reconcile(_context, observed) {
    const { text } = observed.primary.spec;
    return complete().add(CONFIG_MAP.object({ name: observed.name }, { data: { text } }));
  },
};

const primary = { metadata: { name: 'a' }, spec: { text: 'Good day' } };
console.log(run(greeter, { primary }).complete().object(CONFIG_MAP, 'a').data['text']);
`;

const COMPONENT = `
import { exported } from '@innkeeper/guest/component';
import { greeter } from './greeter.js';
export const reconciler = exported(greeter);
`;

const TSCONFIG = {
  compilerOptions: {
    target: 'ES2022',
    module: 'ESNext',
    moduleResolution: 'Bundler',
    strict: true,
    resolveJsonModule: true,
    noEmit: true,
    types: ['node'],
  },
  files: ['guest.ts', 'component.ts'],
};

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'innkeeper-guest-')));
const app = join(folder, 'app');
const tools = realpathSync('node_modules');
let packed: { filename: string; files: { path: string }[] };

/** Runs a program in the folder of the user; returns its output. */
function call(program: string, ...options: string[]): string {
  return execFileSync(program, options, { cwd: app, encoding: 'utf8', stdio: 'pipe' });
}

const tool = (path: string, ...options: string[]) => call(join(tools, path), ...options);

before(() => {
  mkdirSync(app);
  const [pack] = JSON.parse(call('npm', 'pack', '--json', '--pack-destination', folder, resolve('.')));
  packed = pack;
  writeFileSync(join(app, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  const offline = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund'];
  call('npm', 'install', ...offline, join(folder, packed.filename));
  symlinkSync(tools, join(folder, 'node_modules'));
  writeFileSync(join(app, 'guest.ts'), GUEST);
  writeFileSync(join(app, 'greeter.ts'), GUEST.replace('const greeter', 'export const greeter'));
  writeFileSync(join(app, 'component.ts'), COMPONENT);
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify(TSCONFIG));
});

after(() => rmSync(folder, { recursive: true }));

test('package has the sources and the schemas and no other file', () => {
  const own = ['schema', 'src'].flatMap((name) => readdirSync(name).map((file) => `${name}/${file}`));
  const paths = packed.files.map((file) => file.path);
  assert.deepEqual(paths.sort(), ['README.md', 'package.json', ...own].sort());
});

test('package is installed without a dependency', () => {
  assert.deepEqual(readdirSync(join(app, 'node_modules/@innkeeper')), ['guest']);
  const others = readdirSync(join(app, 'node_modules')).filter((name) => !name.startsWith('.'));
  assert.deepEqual(others, ['@innkeeper']);
});

test('installed package has types for a guest and its component', () => {
  assert.equal(tool('typescript/bin/tsc'), '');
});

test('installed package runs a guest when ajv is there', () => {
  const options = ['--bundle', '--format=esm', '--platform=node', '--log-level=error'];
  tool('esbuild/bin/esbuild', ...options, 'guest.ts', '--outfile=guest.mjs');
  assert.equal(call('node', 'guest.mjs'), 'Good day\n');
});
