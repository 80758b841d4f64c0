// Groups of objects that the host updates together.

import type * as documents from './documents.js';

/**
 * Objects that the host updates together: by which method, how many at a time, and when an updated
 * object is good enough to go on. Missing objects are created at once.
 *
 * An object is updated under its name: a name that changes with the content makes a new object
 * instead.
 */
export class UpdateGroup {
  private constructor(readonly document: documents.UpdateGroup) {}

  /** The host writes to no object that exists: each changes when somebody deletes it. */
  static onDelete(name: string): UpdateGroup {
    return new UpdateGroup({ name, method: 'OnDelete' });
  }

  /** The host applies all changes at once, as without a group. */
  static inPlace(name: string): UpdateGroup {
    return new UpdateGroup({ name, method: 'InPlace' });
  }

  /** The host deletes and creates one object, then all others that have the same change. */
  static recreate(name: string): UpdateGroup {
    return new UpdateGroup({ name, method: 'Recreate' });
  }

  /** The host applies changes, to one object at a time. */
  static rollingInPlace(name: string): UpdateGroup {
    return new UpdateGroup({ name, method: 'RollingInPlace' });
  }

  /** The host deletes and creates the objects, one at a time. */
  static rollingRecreate(name: string): UpdateGroup {
    return new UpdateGroup({ name, method: 'RollingRecreate' });
  }

  /** How many objects may be unavailable because of an update; at least 1. Default: 1. */
  maxUnavailable(objects: number): this {
    this.document.maxUnavailable = objects;
    return this;
  }

  /**
   * The share of the objects that may be unavailable because of an update, from 1 to 100, rounded
   * down to at least one object.
   */
  maxUnavailablePercent(percent: number): this {
    this.document.maxUnavailable = `${percent}%`;
    return this;
  }

  /** Seconds for which an updated object has to be ready before the host goes on. */
  minReadySeconds(seconds: number): this {
    this.document.minReadySeconds = seconds;
    return this;
  }

  /**
   * Seconds after which an updated object that is not available has failed, which stops the update.
   */
  progressDeadlineSeconds(seconds: number): this {
    this.document.progressDeadlineSeconds = seconds;
    return this;
  }

  /** Requires a condition that is true, in addition to readiness, before the host goes on. */
  check(type: string): this {
    return this.require({ type });
  }

  /** Requires a condition of this status before the host goes on. */
  checkStatus(type: string, status: documents.ConditionStatus): this {
    return this.require({ type, status });
  }

  /** Requires a condition of this status and reason before the host goes on. */
  checkReason(type: string, status: documents.ConditionStatus, reason: string): this {
    return this.require({ type, status, reason });
  }

  /** Whether the host updates no object; it still creates missing ones. */
  paused(paused = true): this {
    this.document.paused = paused;
    return this;
  }

  private require(check: documents.StatusCheck): this {
    (this.document.statusChecks ??= []).push(check);
    return this;
  }
}
