// The outcomes of a run: a desired state, or a failure.

import type * as documents from './documents.js';
import type { Head, Kind, KubeObject } from './kind.js';
import type { UpdateGroup } from './update-group.js';
import type { ValueSource } from './value-source.js';

/** How the host treats a desired object. */
export interface Treatment {
  /** How it differs from an object that the primary owns. */
  policy?: documents.Policy[];
  /** The name of the group with whose objects the host updates it. */
  updateGroup?: string;
  /** The objects whose values the host copies into it. */
  valuesFrom?: ValueSource[];
}

/** What every outcome may have. */
abstract class Report<D extends documents.DesiredDocument | documents.Failure> {
  constructor(readonly document: D) {}

  /** The status of the primary, without conditions, which `condition` adds. */
  status(status: object): this {
    this.document.status = { ...this.document.status, ...status };
    return this;
  }

  /** Adds a condition; the functions of `condition` make them. */
  condition(condition: documents.Condition): this {
    (this.document.conditions ??= []).push(condition);
    return this;
  }

  /** Adds an Event about the primary. */
  event(reason: string, message: string, type: documents.EventType = 'Normal'): this {
    (this.document.events ??= []).push({ type, reason, message });
    return this;
  }

  /** Runs the guest again after these seconds even if nothing changed. */
  requeue({ seconds }: { seconds: number }): this {
    this.document.requeueAfterSeconds = seconds;
    return this;
  }
}

/** A desired state. */
export class Desired extends Report<documents.DesiredDocument> {
  constructor(readonly tag: 'complete' | 'partial') {
    super({});
  }

  /**
   * Adds an object with the fields that the guest has an opinion about, and no others. Without
   * policies the primary owns it, the host keeps it as desired, and deletes it when a complete
   * desired state lacks it. A {@link Treatment} has policies and all else.
   */
  add(
    object: KubeObject & { metadata: Head },
    ...how: documents.Policy[] | [treatment: Treatment]
  ): this {
    const [first] = how;
    const treatment: Treatment =
      typeof first === 'object' ? first : { policy: how as documents.Policy[] };
    const { policy = [], updateGroup, valuesFrom = [] } = treatment;
    const desired: documents.DesiredObject = { object };
    if (policy.length > 0) {
      desired.policy = policy;
    }
    if (updateGroup !== undefined) {
      desired.updateGroup = updateGroup;
    }
    if (valuesFrom.length > 0) {
      desired.valuesFrom = valuesFrom.map((source) => source.document);
    }
    (this.document.objects ??= []).push(desired);
    return this;
  }

  /** Adds a group of objects that the host updates together. */
  updateGroup(group: UpdateGroup): this {
    (this.document.updateGroups ??= []).push(group.document);
    return this;
  }

  /**
   * Which fields of the primary the host stores, so that it creates a missing object of a rolling
   * group as it was while the update stops. The manifest has to own `apps/v1` `ControllerRevision`.
   */
  revisionHistory(history: documents.RevisionHistory = {}): this {
    this.document.revisionHistory = history;
    return this;
  }

  /** Keeps an object of an earlier run as it is, without desiring it. */
  keep(kind: Kind<KubeObject>, name: string, namespace = ''): this {
    const { apiVersion, kind: of } = kind;
    (this.document.keep ??= []).push({ apiVersion, kind: of, namespace, name });
    return this;
  }

  /** The finalization of a deleted primary is done. */
  finalized(): this {
    this.document.finalized = true;
    return this;
  }
}

/** A failure: the host changes no object. */
export class Failed extends Report<documents.Failure> {
  readonly tag = 'failed';
}

/** The result of a run. */
export type Outcome = Desired | Failed;

/** The whole desired state: the host deletes earlier objects that are not in it. */
export function complete(): Desired {
  return new Desired('complete');
}

/** A part of the desired state: the host applies it and deletes nothing. */
export function partial(): Desired {
  return new Desired('partial');
}

/**
 * Fails the run: the host changes no object and retries with backoff. `reason` is one CamelCase
 * word, `message` is for people. A permanent failure is retried only when something changes.
 */
export function failed(reason: string, message: string, more?: { permanent: boolean }): Failed {
  return new Failed({ reason, message, ...more });
}
