// The observed state of one primary.

import type * as documents from './documents.js';
import type { Kind, KubeObject } from './kind.js';

/** An object and its readiness. */
export class ObservedObject<T extends KubeObject> {
  /** The object. */
  readonly object: T;
  /** The state of the object, by the rules of kstatus. */
  readonly state: documents.ReadinessState;
  /** The reason of the state, for people; empty if ready. */
  readonly message: string;

  constructor({ object, readiness }: documents.ObservedObject) {
    this.object = object as T;
    this.state = readiness.state;
    this.message = readiness.message ?? '';
  }

  /** Whether the object is ready. */
  get ready(): boolean {
    return this.state === 'Ready';
  }

  /** The name of the object. */
  get name(): string {
    return this.object.metadata?.name ?? '';
  }

  /** The namespace of the object; empty for a cluster-scoped kind. */
  get namespace(): string {
    return this.object.metadata?.namespace ?? '';
  }
}

/** The observed state: the primary of type `P`, its objects, and parameters of type `Q`. */
export class Observed<P extends KubeObject, Q> {
  /** The primary. The API server has validated it with the schema of its definition. */
  readonly primary: P;
  /** The parameters of the Module. The host has validated them with the manifest's schema. */
  readonly parameters: Q;
  /** Desired objects that the host could not apply after the previous run, with reasons. */
  readonly unapplied: documents.Unapplied[];
  /** Whether the primary is being deleted and waits for `finalized` of this guest. */
  readonly deleting: boolean;

  constructor(private readonly document: documents.ObservedDocument) {
    this.primary = document.object as P;
    this.parameters = document.parameters as Q;
    this.unapplied = document.unapplied ?? [];
    this.deleting = document.deleting ?? false;
  }

  /** The name of the primary. */
  get name(): string {
    return this.primary.metadata?.name ?? '';
  }

  /** The namespace of the primary; empty for a cluster-scoped kind. */
  get namespace(): string {
    return this.primary.metadata?.namespace ?? '';
  }

  /** The labels of the primary. */
  get labels(): Record<string, string> {
    return this.primary.metadata?.labels ?? {};
  }

  /** The annotations of the primary. */
  get annotations(): Record<string, string> {
    return this.primary.metadata?.annotations ?? {};
  }

  /** The objects of a kind that belong to the primary, ordered by namespace and name. */
  owned<T extends KubeObject>(kind: Kind<T>): ObservedObject<T>[] {
    const owned = this.document.owned.filter((one) => kind.includes(one.object as KubeObject));
    return owned.map((one) => new ObservedObject<T>(one));
  }

  /** Whether the API server serves a kind of the manifest. */
  serves(kind: Kind<KubeObject>): boolean {
    const unserved = this.document.unserved ?? [];
    return !unserved.some((one) => one.apiVersion === kind.apiVersion && one.kind === kind.kind);
  }
}
