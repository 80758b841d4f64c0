// The export of a component, with modules of test/host in place of the host.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ReadError as HostError } from 'innkeeper:guest/cluster@0.1.0';

import { exported } from '../src/component.js';
import { complete, describe, type Guest, kind, type KubeObject, ReadError } from '../src/index.js';
import { reads } from './host/cluster.js';
import { lines } from './host/log.js';

const NAMESPACE = kind('v1', 'Namespace', 'namespaces', 'Cluster');
const CONFIG_MAP = kind('v1', 'ConfigMap', 'configmaps');

const reader: Guest<KubeObject> = {
  manifest: describe(NAMESPACE, 'reader', '1.0.0').reads(CONFIG_MAP).manifest(),
  reconcile(context, observed) {
    console.log('hello', observed.name);
    const filter = { namespace: 'a', selector: 'app=x' };
    const names = context.list(CONFIG_MAP, filter).map((one) => one.name);
    try {
      context.get(CONFIG_MAP, 'one', 'a');
    } catch (error) {
      assert.ok(error instanceof ReadError);
      return complete().status({ why: `${error.reason}: ${error.message}` });
    }
    return complete().status({ names, now: context.now().toISOString() });
  },
};

function reconciled(error?: HostError): unknown {
  reads.calls = [];
  reads.error = error;
  const observed = { object: { metadata: { name: 'team' } }, owned: [] };
  const { tag, val } = exported(reader).reconcile(JSON.stringify(observed));
  assert.equal(tag, 'complete');
  return (JSON.parse(val) as { status: unknown }).status;
}

test('describe returns the manifest', () => {
  assert.deepEqual(JSON.parse(exported(reader).describe()), reader.manifest);
});

test('reads, clock and log are those of the host', () => {
  assert.deepEqual(reconciled(), { names: ['one'], now: '1970-01-01T00:00:00.000Z' });
  const kind = { apiVersion: 'v1', kind: 'ConfigMap' };
  assert.deepEqual(reads.calls, [
    ['list', kind, 'a', 'app=x'],
    ['get', kind, 'a', 'one'],
  ]);
  assert.deepEqual(lines, [['info', 'hello team']]);
});

test('read error of the host becomes an error of its class', () => {
  const place = 'ConfigMap a/one';
  for (const [error, why] of [
    [{ tag: 'not-found' }, `NotFound: ${place}: there is no such object`],
    [{ tag: 'not-served' }, `NotServed: ${place}: the API server does not serve the kind`],
    [{ tag: 'forbidden', val: 'no get' }, `Forbidden: ${place}: no get`],
    [
      { tag: 'undeclared' },
      `Undeclared: ${place}: the manifest does not declare the kind; add it to reads`,
    ],
    [{ tag: 'invalid', val: 'bad' }, `InvalidRead: ${place}: bad`],
  ] as const) {
    assert.deepEqual(reconciled(error), { why });
  }
});
