import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import { complete, exported } from './innkeeper.js';
import * as labels from './labels.js';

// Calls the guest with JSON texts, as the host does, and validates its documents.
const WIT = new URL('../../../wit', import.meta.url).pathname;
const ajv = new Ajv({ formats: { uint32: true }, keywords: ['x-kubernetes-int-or-string'] });
const lines = [];
const consoleLog = console.log;
afterEach(() => {
  console.log = consoleLog;
});
const guest = (of = labels) => exported(of, (level, line) => lines.push(`${level} ${line}`));

function conforms(schema, document) {
  const text = readFileSync(`${WIT}/schema/${schema}.json`, 'utf8');
  const validate = ajv.getSchema(JSON.parse(text).$id) ?? ajv.compile(JSON.parse(text));
  assert.ok(validate(document), ajv.errorsText(validate.errors));
}

function run({ annotations, wanted = {} }, of = labels) {
  const observed = {
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web', annotations } },
    parameters: { labels: wanted },
    owned: [],
    unapplied: [],
    unserved: [],
    reportReadFields: true,
    deleting: false,
  };
  conforms('observed', JSON.parse(JSON.stringify(observed)));
  const { tag, val } = guest(of).reconcile(JSON.stringify(observed));
  const document = JSON.parse(val);
  conforms(tag === 'failed' ? 'failure' : 'desired', document);
  return { tag, document };
}

test('manifest conforms to the schema', () => {
  const manifest = JSON.parse(guest().describe());
  conforms('manifest', manifest);
  assert.deepEqual(manifest.owned, [{ kind: manifest.primary, merges: true }]);
});

test('manifest is invalid when it has an unknown member', () => {
  assert.throws(() => conforms('manifest', { ...labels.describe(), onwed: [] }), /additional/);
});

test('labels are merged into the namespace', () => {
  const { tag, document } = run({ wanted: { team: 'a' } });
  assert.equal(tag, 'complete');
  assert.deepEqual(document.objects, [
    {
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web', labels: { team: 'a' } } },
      policy: ['merge'],
    },
  ]);
});

test('plain namespace gets no labels', () => {
  const annotations = { [labels.PLAIN]: 'true' };
  assert.deepEqual(run({ annotations, wanted: { team: 'a' } }), { tag: 'complete', document: {} });
  assert.deepEqual(run({}), { tag: 'complete', document: {} });
});

test('exception becomes a failure and its place is logged', () => {
  const broken = { reconcile: () => undefined.name };
  const { tag, document } = run({}, broken);
  assert.equal(tag, 'failed');
  assert.equal(document.reason, 'GuestError');
  assert.match(document.message, /^TypeError: .*'name'/);
  assert.match(lines.at(-1), /^error TypeError[^]*labels\.test\.js/);
});

test('console output is logged', () => {
  const logging = { reconcile: ({ object }) => (console.log('it is', object.kind), complete()) };
  run({}, logging);
  assert.equal(lines.at(-1), 'info it is Namespace');
});
