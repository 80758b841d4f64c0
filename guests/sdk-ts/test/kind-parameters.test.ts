// A guest whose kinds are parameters of the Module.
import assert from 'node:assert/strict';
import { test } from 'node:test';

// The path also holds in the copy in target/sdk-ts.
import expected from '../../../guests/sdk/tests/kind_parameters.json';
import {
  complete,
  describe,
  type Guest,
  kind,
  type KindName,
  kindOfParameter,
  type KubeObject,
} from '../src/index.js';
import { conforms, run } from '../src/testing.js';

interface WithData extends KubeObject {
  data: Record<string, string>;
}
interface Parameters {
  target: KindName;
  copies: KindName;
  watch: KindName;
}

const copier: Guest<KubeObject, Parameters> = {
  manifest: describe(kind('v1', 'Namespace', 'namespaces', 'Cluster'), 'copier', '1.0.0')
    .parameters(expected.parametersSchema)
    .decoratorOfParameter('target')
    .ownsParameter('copies')
    .mergesIntoParameter('labelled')
    .readsParameter('watch')
    .manifest(),
  reconcile(context, { name, namespace, parameters }) {
    const source = context.get(kindOfParameter<WithData>(parameters.watch), 'source', namespace);
    const copies = kindOfParameter<WithData>(parameters.copies);
    return complete().add(copies.object({ name }, { data: source.object.data }));
  },
};

test('manifest with kind parameters is that of every SDK', () => {
  conforms('manifest', copier.manifest);
  assert.deepEqual(copier.manifest, expected);
});

test('guest reads and desires the kinds of its parameters', () => {
  const configMap = kind<WithData>('v1', 'ConfigMap', 'configmaps');
  const result = run(copier, {
    primary: { metadata: { name: 'web', namespace: 'a' } },
    parameters: {
      target: { apiVersion: 'apps/v1', kind: 'Deployment' },
      copies: { apiVersion: 'v1', kind: 'Secret' },
      watch: { apiVersion: 'v1', kind: 'ConfigMap' },
    },
    objects: [configMap.object({ name: 'source', namespace: 'a' }, { data: { a: 'b' } })],
  }).complete();
  assert.deepEqual(result.object(kind<WithData>('v1', 'Secret', 'secrets'), 'web').data, { a: 'b' });
});
