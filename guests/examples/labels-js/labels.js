// Labels on every Namespace: the Module's parameters say which. As ../labels does in Rust.
import { complete } from './innkeeper.js';

/** The annotation of a Namespace that is left without labels. */
export const PLAIN = 'example.innkeeper.dev/plain';

const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
};

/** What the guest is: a `manifest` document. */
export function describe() {
  return {
    name: 'labels-js',
    version: '0.1.0',
    primary: NAMESPACE,
    // Nothing is made: its account needs no right to create or delete Namespaces.
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

/** What should be, from what is: takes an `observed` document. */
export function reconcile({ object, parameters }) {
  const { name, annotations = {} } = object.metadata;
  const { labels } = parameters;
  if (annotations[PLAIN] === 'true' || Object.keys(labels).length === 0) {
    return complete();
  }
  const merged = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
  return complete({ objects: [{ object: merged, policy: ['merge'] }] });
}
