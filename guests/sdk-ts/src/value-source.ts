// Objects whose values the host copies into desired objects.

import type * as documents from './documents.js';

/**
 * An object whose values the host copies into a desired object, without the guest seeing them.
 *
 * The Module grants the source, and the namespaces of the desired objects, in `spec.valueSources`.
 * The host copies a Secret into Secrets, and a ConfigMap into ConfigMaps. It writes the copy again
 * when the source changes.
 */
export class ValueSource {
  readonly document: documents.ValueSource;

  private constructor(kind: documents.ValueSourceKind, namespace: string, name: string) {
    this.document = namespace === '' ? { kind, name } : { kind, namespace, name };
  }

  /** A source that is a Secret; an empty namespace means the primary's. */
  static secret(namespace: string, name: string): ValueSource {
    return new ValueSource('Secret', namespace, name);
  }

  /** A source that is a ConfigMap; an empty namespace means the primary's. */
  static configMap(namespace: string, name: string): ValueSource {
    return new ValueSource('ConfigMap', namespace, name);
  }

  /** Copies this key. Without a key, the host copies all of them. */
  key(key: string): this {
    return this.keyAs(key, key);
  }

  /** Copies the key `from` of the source to the key `to` of the desired object. */
  keyAs(from: string, to: string): this {
    this.document.keys = { ...this.document.keys, [from]: to };
    return this;
  }
}
