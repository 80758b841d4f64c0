// Merges the labels of the Module's parameters into every Namespace, like ../labels in Rust.
import { complete } from './innkeeper.js';

/** The annotation of a Namespace that gets no labels. */
export const PLAIN = 'example.innkeeper.dev/plain';

const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
};

/** Returns the `manifest` document. */
export function describe() {
  return {
    name: 'labels-js',
    version: '0.1.0',
    primary: NAMESPACE,
    // The guest only merges: its ServiceAccount needs no rights to create or delete Namespaces.
    owned: [{ kind: NAMESPACE, merges: true }],
    parametersSchema: {
      type: 'object',
      required: ['labels'],
      additionalProperties: false,
      properties: {
        labels: { type: 'object', additionalProperties: { type: 'string' } },
      },
    },
  };
}

/** Computes the desired state from an `observed` document. */
export function reconcile({ object, parameters }) {
  const { name, annotations = {} } = object.metadata;
  const { labels } = parameters;
  if (annotations[PLAIN] === 'true' || Object.keys(labels).length === 0) {
    return complete();
  }
  const merged = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
  return complete({ objects: [{ object: merged, policy: ['merge'] }] });
}
