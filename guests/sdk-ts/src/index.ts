// Write Innkeeper guests in TypeScript. docs/languages.md shows how.

export * as condition from './condition.js';
export { Context } from './context.js';
export { describe, Describe } from './describe.js';
export { complete, Desired, failed, Failed, partial } from './desired.js';
export type { Outcome, Treatment } from './desired.js';
export * as documents from './documents.js';
export {
  BadInput,
  Forbidden,
  InvalidRead,
  NotFound,
  NotServed,
  ReadError,
  Undeclared,
} from './errors.js';
export type { Guest } from './guest.js';
export { Kind, kind, kindOfParameter } from './kind.js';
export type { DesiredKubeObject, Fields, KindName, KubeObject, Metadata } from './kind.js';
export { Observed, ObservedObject } from './observed.js';
export { templateHash } from './template-hash.js';
export { UpdateGroup } from './update-group.js';
export { ValueSource } from './value-source.js';
