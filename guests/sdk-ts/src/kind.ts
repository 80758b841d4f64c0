// Kinds of Kubernetes resources and their desired objects.

import type { Kind as KindDocument } from './documents.js';

/** The metadata of an object that guests read. */
export interface Metadata {
  name?: string;
  namespace?: string;
  uid?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

/** What every object has. The type of a kind's objects extends it. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: Metadata;
}

/** The metadata of a desired object; without a namespace it is in that of the primary. */
export interface Head {
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/** The fields of an object that a guest may desire. */
export type Fields<T> = Omit<T, 'apiVersion' | 'kind' | 'metadata' | 'status'>;

/** A desired object. */
export type DesiredKubeObject<T> = Fields<T> & {
  apiVersion: string;
  kind: string;
  metadata: Head;
};

/** A kind; `T` is the type of its objects. */
export class Kind<T extends KubeObject> {
  constructor(
    readonly apiVersion: string,
    readonly kind: string,
    readonly plural: string,
    readonly scope: 'Namespaced' | 'Cluster' = 'Namespaced',
  ) {}

  /** A desired object with the fields that the guest has an opinion about, and no others. */
  object(head: Head, fields: Fields<T>): DesiredKubeObject<T> {
    const { apiVersion, kind } = this;
    return { apiVersion, kind, metadata: head, ...fields };
  }

  /** The kind as a manifest has it. */
  document(): KindDocument {
    const { apiVersion, kind, plural, scope } = this;
    return scope === 'Cluster' ? { apiVersion, kind, plural, scope } : { apiVersion, kind, plural };
  }

  /** Whether an object is of this kind. */
  includes(object: KubeObject): object is T {
    return object.apiVersion === this.apiVersion && object.kind === this.kind;
  }
}

/** A kind whose objects have the type `T`: `kind<ConfigMap>('v1', 'ConfigMap', 'configmaps')`. */
export function kind<T extends KubeObject = KubeObject & Record<string, unknown>>(
  apiVersion: string,
  kind: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster' = 'Namespaced',
): Kind<T> {
  return new Kind<T>(apiVersion, kind, plural, scope);
}

/** The value of a parameter of the Module that names a kind. */
export interface KindName {
  apiVersion: string;
  kind: string;
}

/** The kind that a parameter of the Module names, for desired objects and reads. */
export function kindOfParameter<T extends KubeObject = KubeObject & Record<string, unknown>>(
  name: KindName,
): Kind<T> {
  return new Kind<T>(name.apiVersion, name.kind, '');
}
