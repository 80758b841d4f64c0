// Whole documents of desired states.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  complete,
  type Desired,
  kind,
  templateHash,
  UpdateGroup,
  ValueSource,
} from '../src/index.js';
import { conforms } from '../src/testing.js';

const POD = kind('v1', 'Pod', 'pods');
const CONFIG_MAP = kind('v1', 'ConfigMap', 'configmaps');
const SECRET = kind('v1', 'Secret', 'secrets');

function isWrittenAs(desired: Desired, expected: object): void {
  conforms('desired', desired.document);
  assert.deepEqual(JSON.parse(JSON.stringify(desired.document)), expected);
}

test('group and its objects are written with what is set', () => {
  const pod = POD.object({ name: 'web-0' }, {});
  const one = CONFIG_MAP.object({ name: 'a' }, {});
  const other = CONFIG_MAP.object({ name: 'b' }, {});
  const group = UpdateGroup.rollingRecreate('pods')
    .maxUnavailablePercent(25)
    .minReadySeconds(10)
    .progressDeadlineSeconds(600)
    .check('Ready')
    .checkReason('Synced', 'False', 'Held')
    .checkStatus('Paused', 'Unknown')
    .paused();
  const desired = complete()
    .updateGroup(group)
    .updateGroup(UpdateGroup.onDelete('maps'))
    .add(pod, { policy: ['orphan'], updateGroup: 'pods' })
    .add(one, { updateGroup: 'maps' })
    .add(other, 'create-only');
  const pods = {
    name: 'pods',
    method: 'RollingRecreate',
    maxUnavailable: '25%',
    minReadySeconds: 10,
    progressDeadlineSeconds: 600,
    statusChecks: [
      { type: 'Ready' },
      { type: 'Synced', status: 'False', reason: 'Held' },
      { type: 'Paused', status: 'Unknown' },
    ],
    paused: true,
  };
  isWrittenAs(desired, {
    updateGroups: [pods, { name: 'maps', method: 'OnDelete' }],
    objects: [
      { object: pod, policy: ['orphan'], updateGroup: 'pods' },
      { object: one, updateGroup: 'maps' },
      { object: other, policy: ['create-only'] },
    ],
  });
});

test('methods of groups are those of the contract', () => {
  const desired = complete()
    .updateGroup(UpdateGroup.inPlace('a'))
    .updateGroup(UpdateGroup.recreate('b'))
    .updateGroup(UpdateGroup.rollingInPlace('c').maxUnavailable(2));
  isWrittenAs(desired, {
    updateGroups: [
      { name: 'a', method: 'InPlace' },
      { name: 'b', method: 'Recreate' },
      { name: 'c', method: 'RollingInPlace', maxUnavailable: 2 },
    ],
  });
});

test('history is written with what is set', () => {
  isWrittenAs(complete().revisionHistory(), { revisionHistory: {} });
  const history = { fieldPaths: ['spec.template'], limit: 3 };
  isWrittenAs(complete().revisionHistory(history), { revisionHistory: history });
});

test('sources are written with the keys that are named', () => {
  const secret = SECRET.object({ name: 'copy' }, {});
  const configMap = CONFIG_MAP.object({ name: 'copy' }, {});
  const central = ValueSource.secret('central', 'pull');
  const own = ValueSource.secret('', 'own').key('a').keyAs('b', 'c');
  const settings = ValueSource.configMap('central', 'settings');
  const desired = complete()
    .add(secret, { valuesFrom: [central, own] })
    .add(configMap, { valuesFrom: [settings] });
  const sources = [
    { kind: 'Secret', namespace: 'central', name: 'pull' },
    { kind: 'Secret', name: 'own', keys: { a: 'a', b: 'c' } },
  ];
  const ofSettings = { kind: 'ConfigMap', namespace: 'central', name: 'settings' };
  isWrittenAs(desired, {
    objects: [
      { object: secret, valuesFrom: sources },
      { object: configMap, valuesFrom: [ofSettings] },
    ],
  });
});

test('template hash of a value is that of every SDK', () => {
  assert.equal(templateHash(null), 'drpwggh');
  assert.equal(templateHash({ b: [1, 'x'], a: { c: true } }), 'qsx8vqm');
  assert.equal(templateHash({ a: { c: true }, b: [1, 'x'] }), 'qsx8vqm');
  const texts = { 'é\u2028': '\u0001\b"\\/<&>\u007f😀', '\ue000': -1, '😀': [[], {}, false] };
  assert.equal(templateHash(texts), 'phsrcdl');
});
