import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import { exported } from './innkeeper.js';
import * as logic from './logic.js';

// Calls the guest with JSON texts, as the host does, and validates its documents.
const ajv = new Ajv({ formats: { uint32: true }, keywords: ['x-kubernetes-int-or-string'] });
const guest = exported(logic, () => {});

function conforms(schema, document) {
  const text = readFileSync(new URL(`wit/schema/${schema}.json`, import.meta.url), 'utf8');
  const validate = ajv.getSchema(JSON.parse(text).$id) ?? ajv.compile(JSON.parse(text));
  assert.ok(validate(document), ajv.errorsText(validate.errors));
}

function run(object) {
  const { apiVersion, kind } = logic.KIND;
  const observed = {
    object: { apiVersion, kind, ...object },
    owned: [],
    unapplied: [],
    unserved: [],
    reportReadFields: true,
    deleting: false,
  };
  conforms('observed', observed);
  const { tag, val } = guest.reconcile(JSON.stringify(observed));
  const document = JSON.parse(val);
  conforms(tag === 'failed' ? 'failure' : 'desired', document);
  return { tag, document };
}

test('manifest conforms to the schema', () => {
  conforms('manifest', JSON.parse(guest.describe()));
});

@reconciler@test('config map has the name and the text', () => {
@namespaced_reconciler@  const spec = { text: 'Good day' };
@cluster_reconciler@  const spec = { text: 'Good day', namespace: 'default' };
@reconciler@  const { tag, document } = run({ metadata: { name: 'first' }, spec });
@reconciler@  assert.equal(tag, 'complete');
@reconciler@  const [{ object }] = document.objects;
@reconciler@  assert.equal(object.metadata.name, 'first');
@reconciler@  assert.deepEqual(object.data, { text: 'Good day' });
@reconciler@});
@decorator@test('label has the value of the annotation', () => {
@decorator@  const { tag, document } = run({
@decorator@    metadata: { name: 'first', annotations: { '@name@/label': 'web' } },
@decorator@  });
@decorator@  assert.equal(tag, 'complete');
@decorator@  const [{ object, policy }] = document.objects;
@decorator@  assert.deepEqual(object.metadata.labels, { '@name@': 'web' });
@decorator@  assert.deepEqual(policy, ['merge']);
@decorator@});
@decorator@
@decorator@test('run fails when the annotation is not the value of a label', () => {
@decorator@  for (const label of ['not a label', 'a\n', '-a', 'a'.repeat(64)]) {
@decorator@    const annotations = { '@name@/label': label };
@decorator@    const { tag, document } = run({ metadata: { name: 'first', annotations } });
@decorator@    assert.equal(tag, 'failed');
@decorator@    assert.equal(document.reason, 'InvalidAnnotation');
@decorator@  }
@decorator@});
@decorator@
@decorator@test('object without the annotation is not touched', () => {
@decorator@  const { document } = run({ metadata: { name: 'first' } });
@decorator@  assert.deepEqual(document, {});
@decorator@});
