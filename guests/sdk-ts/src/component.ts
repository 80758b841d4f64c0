/// <reference path="./wit.d.ts" />
// The imports and exports of the component. The other modules run in node too.

import { nowMs } from 'innkeeper:guest/clock@0.1.0';
import { get, list, type ReadError as ReadErrorValue } from 'innkeeper:guest/cluster@0.1.0';
import { write } from 'innkeeper:guest/log@0.1.0';

import type { Host } from './context.js';
import { Forbidden, InvalidRead, NotFound, NotServed, ReadError, Undeclared } from './errors.js';
import type { Guest } from './guest.js';
import type { KubeObject } from './kind.js';
import { reconcile } from './run.js';

const host: Host = {
  get({ apiVersion, kind }, namespace, name) {
    const place = namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
    return read(place, () => get({ apiVersion, kind }, namespace, name));
  },
  list({ apiVersion, kind }, namespace, selector) {
    const place = namespace === '' ? 'in all namespaces' : `in namespace ${namespace}`;
    return read(`${kind} ${place}`, () => list({ apiVersion, kind }, namespace, selector));
  },
  nowMs,
  write,
};

/** The exports of a component: `export const reconciler = exported(guest)` in guest.ts. */
export function exported<P extends KubeObject, Q>(guest: Guest<P, Q>) {
  return {
    describe: () => JSON.stringify(guest.manifest),
    reconcile(observed: string) {
      const { tag, text } = reconcile(guest, observed, host);
      return { tag, val: text };
    },
  };
}

function read(place: string, call: () => string): string {
  try {
    return call();
  } catch (error) {
    throw readError(place, (error as { payload?: ReadErrorValue }).payload) ?? error;
  }
}

function readError(place: string, error: ReadErrorValue | undefined): ReadError | undefined {
  switch (error?.tag) {
    case 'not-found':
      return new NotFound(`${place}: there is no such object`);
    case 'not-served':
      return new NotServed(`${place}: the API server does not serve the kind`);
    case 'forbidden':
      return new Forbidden(`${place}: ${error.val}`);
    case 'undeclared':
      return new Undeclared(`${place}: the manifest does not declare the kind; add it to reads`);
    case 'invalid':
      return new InvalidRead(`${place}: ${error.val}`);
    default:
      return undefined;
  }
}
