// @ts-check
@reconciler@// Each @kind@ becomes a ConfigMap with its text.
@decorator@// Each @kind@ with the annotation @name@/label gets the label @name@ with its value.
@reconciler@import { complete } from './innkeeper.js';
@decorator@import { complete, failed } from './innkeeper.js';
@reconciler@import { CRD } from './crd.js';

/** @type {import('./wit/documents.js').Kind} */
export const KIND = {
  apiVersion: '@api_version@',
  kind: '@kind@',
  plural: '@plural@',
@cluster@  scope: 'Cluster',
};

@reconciler@/** @type {import('./wit/documents.js').Kind} */
@reconciler@const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' };
@reconciler@
@decorator@// At most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends.
@decorator@const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;
@decorator@
/**
 * Returns the `manifest` document.
 * @returns {import('./wit/documents.js').Manifest}
 */
export function describe() {
  return {
    name: '@name@',
    version: '0.1.0',
    primary: KIND,
@reconciler@    owned: [{ kind: CONFIG_MAP }],
@reconciler@    crds: [CRD],
@decorator@    // The guest only merges: its ServiceAccount needs no rights to create or delete objects.
@decorator@    owned: [{ kind: KIND, merges: true }],
@decorator@    decorates: true,
  };
}

/**
 * Computes the desired state from an `observed` document.
@namespaced_reconciler@ * @param {import('./innkeeper.js').Observed<{ text: string }>} observed
@cluster_reconciler@ * @param {import('./innkeeper.js').Observed<{ text: string, namespace: string }>} observed
@decorator@ * @param {import('./innkeeper.js').Observed} observed
 */
export function reconcile({ object }) {
@reconciler@  const { name } = object.metadata;
@reconciler@  const { text } = object.spec;
@namespaced_reconciler@  const metadata = { name };
@cluster_reconciler@  const metadata = { name, namespace: object.spec.namespace };
@reconciler@  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text } };
@reconciler@  return complete({ objects: [{ object: configMap }], status: { configMap: name } });
@decorator@  const { name, annotations = {} } = object.metadata;
@decorator@  const label = annotations['@name@/label'];
@decorator@  if (label === undefined) {
@decorator@    return complete();
@decorator@  }
@decorator@  if (!LABEL_VALUE.test(label)) {
@decorator@    const message = `the annotation @name@/label is not the value of a label: ${label}`;
@decorator@    return failed('InvalidAnnotation', message, { permanent: true });
@decorator@  }
@decorator@  const { apiVersion, kind } = KIND;
@decorator@  const merged = { apiVersion, kind, metadata: { name, labels: { '@name@': label } } };
@decorator@  return complete({ objects: [{ object: merged, policy: ['merge'] }] });
}
