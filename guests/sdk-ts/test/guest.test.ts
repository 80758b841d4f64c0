// Runs of small guests, as the host and as tests run them.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  BadInput,
  complete,
  condition,
  type Context,
  describe,
  failed,
  type Guest,
  kind,
  type KubeObject,
  NotFound,
  type Observed,
  type Outcome,
  partial,
} from '../src/index.js';
import { conforms, run, type State } from '../src/testing.js';

interface Greeting extends KubeObject {
  spec: { text: string };
}
interface ConfigMap extends KubeObject {
  data: Record<string, string>;
}
interface Parameters {
  size: number;
}

const GREETING = kind<Greeting>('example.com/v1', 'Greeting', 'greetings', 'Cluster');
const CONFIG_MAP = kind<ConfigMap>('v1', 'ConfigMap', 'configmaps');
const SECRET = kind('v1', 'Secret', 'secrets');
const SERVICE = kind('v1', 'Service', 'services');

type Body = (context: Context, observed: Observed<Greeting, Parameters>) => Outcome;

const guest = (reconcile: Body): Guest<Greeting, Parameters> => ({
  manifest: describe(GREETING, 'greeter', '1.0.0')
    .owns(CONFIG_MAP)
    .ownsIfServed(SERVICE)
    .reads(SECRET)
    .finalizes()
    .resync({ seconds: 60 })
    .manifest(),
  reconcile,
});

function reconciled(body: Body, more: Partial<State<Greeting, Parameters>> = {}) {
  const primary = { metadata: { name: 'hello' }, spec: { text: 'Good day' } };
  return run(guest(body), { primary, parameters: { size: 1 }, ...more });
}

test('manifest has all that was described', () => {
  const { manifest } = guest(() => complete());
  conforms('manifest', manifest);
  assert.equal(manifest.primary?.scope, 'Cluster');
  assert.deepEqual(manifest.owned?.[1], { kind: SERVICE.document(), optional: true });
  assert.deepEqual(manifest.reads, [SECRET.document()]);
  assert.deepEqual([manifest.finalizer, manifest.resyncSeconds], ['', 60]);
});

test('manifest is invalid when it has an unknown member', () => {
  const { manifest } = guest(() => complete());
  assert.throws(() => conforms('manifest', { ...manifest, onwed: [] }), /additional/);
});

test('run is refused when the manifest names no primary', () => {
  const { manifest, reconcile } = guest(() => complete());
  const { primary: _, ...policy } = manifest;
  const primary = { metadata: { name: 'hello' }, spec: { text: 'Good day' } };
  conforms('manifest', policy);
  assert.throws(() => run({ manifest: policy, reconcile }, { primary }), /names no primary/);
});

test('complete outcome has all that was added', () => {
  const result = reconciled((_context, { name, primary }) =>
    complete()
      .add(CONFIG_MAP.object({ name, namespace: 'a' }, { data: primary.spec }), 'orphan')
      .keep(SERVICE, 'old', 'a')
      .finalized()
      .status({ text: primary.spec.text })
      .condition(condition.isTrue('Greeted', 'MessageSent'))
      .event('Greeted', 'it is there', 'Warning')
      .requeue({ seconds: 5 }),
  ).complete();
  assert.deepEqual(result.object(CONFIG_MAP, 'hello').data, { text: 'Good day' });
  assert.deepEqual(result.policies(CONFIG_MAP, 'hello'), ['orphan']);
  assert.deepEqual(result.status, { text: 'Good day' });
  assert.equal(result.condition('Greeted').status, 'True');
  assert.equal(result.document.keep?.[0]?.name, 'old');
  assert.equal(result.document.events?.[0]?.type, 'Warning');
  assert.equal(result.document.requeueAfterSeconds, 5);
  assert.ok(result.document.finalized);
});

test('partial outcome and failures have their tags', () => {
  reconciled(() => partial()).partial();
  assert.ok(!reconciled(() => failed('NoText', 'no').requeue({ seconds: 1 })).failed('NoText').permanent);
});

test('error becomes a failure and its place is logged', () => {
  const result = reconciled(() => (undefined as unknown as { name: Outcome }).name);
  assert.match(result.failed('GuestError').message, /^TypeError: .*'name'/);
  assert.equal(result.lines.length, 1);
  assert.equal(result.lines[0]?.level, 'error');
  assert.match(result.lines[0]?.text ?? '', /^TypeError[^]*guest\.test\.ts/);
});

test('bad input becomes a permanent failure', () => {
  const result = reconciled(() => {
    throw new BadInput('TooLong', 'spec.text: too long');
  });
  assert.ok(result.failed('TooLong').permanent);
});

test('printed lines and lines of the log are logged', () => {
  const { log } = console;
  const { lines } = reconciled((context, { primary }) => {
    console.log('it is', primary.kind);
    context.log('warn', 'careful');
    console.error('oh');
    return complete();
  });
  assert.deepEqual(lines, [
    { level: 'info', text: 'it is Greeting' },
    { level: 'warn', text: 'careful' },
    { level: 'error', text: 'oh' },
  ]);
  assert.equal(console.log, log);
});

test('owned objects have their type and readiness', () => {
  const body: Body = (_context, observed) => {
    const [one] = observed.owned(CONFIG_MAP);
    return complete().status({ text: one?.object.data.text, ready: one?.ready });
  };
  const owned = [CONFIG_MAP.object({ name: 'a' }, { data: { text: 'x' } }), SERVICE.object({ name: 'b' }, {})];
  assert.deepEqual(reconciled(body, { owned }).status, { text: 'x', ready: true });
  assert.equal(reconciled(body, { owned, notReady: { a: 'InProgress' } }).status.ready, false);
});

test('reads are answered from the objects of the test', () => {
  const body: Body = (context) => {
    const some = context.list(SECRET, { selector: 'app=x,tier!=b,on' }).map((one) => one.name);
    try {
      context.get(SECRET, 'gone', 'a');
    } catch (error) {
      assert.ok(error instanceof NotFound);
      return complete().status({ some, all: context.list(SECRET).length, why: error.message });
    }
    return complete();
  };
  const secret = (name: string, labels: Record<string, string>) =>
    SECRET.object({ name, namespace: 'a', labels }, {});
  const objects = [
    secret('one', { app: 'x', on: '' }),
    secret('two', { app: 'x', tier: 'b', on: '' }),
    secret('three', {}),
  ];
  assert.deepEqual(reconciled(body, { objects }).status, {
    some: ['one'],
    all: 3,
    why: 'Secret gone: there is no such object',
  });
});

test('read error that is not caught fails the run', () => {
  const result = reconciled((context) => {
    context.get(SECRET, 'gone', 'a');
    return complete();
  });
  assert.ok(!result.failed('NotFound').permanent);
});

test('read of a kind that is not declared fails', () => {
  const result = reconciled((context) => {
    context.list(kind('v1', 'Pod', 'pods'));
    return complete();
  });
  assert.match(result.failed('Undeclared').message, /add it to reads/);
});

test('observed has parameters, kinds that are not served, deletion and the time', () => {
  const body: Body = (context, observed) =>
    complete().status({
      served: observed.serves(SERVICE),
      deleting: observed.deleting,
      now: context.now().toISOString(),
      size: observed.parameters.size,
    });
  assert.deepEqual(reconciled(body, { unserved: [SERVICE], deleting: true }).status, {
    served: false,
    deleting: true,
    now: '2026-01-01T00:00:00.000Z',
    size: 1,
  });
});
