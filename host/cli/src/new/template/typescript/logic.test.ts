// Runs the guest with JSON texts, as the host does. The SDK validates all documents.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { run } from '@innkeeper/guest/testing';

@reconciler@import { CONFIG_MAP, guest } from '../src/logic.js';
@decorator@import { guest, PRIMARY } from '../src/logic.js';

@reconciler@test('config map has the name and the text', () => {
@namespaced_reconciler@  const spec = { text: 'Good day' };
@cluster_reconciler@  const spec = { text: 'Good day', namespace: 'default' };
@reconciler@  const result = run(guest, { primary: { metadata: { name: 'first' }, spec } }).complete();
@reconciler@  assert.deepEqual(result.object(CONFIG_MAP, 'first').data, { text: 'Good day' });
@reconciler@});
@decorator@test('label has the value of the annotation', () => {
@decorator@  const metadata = { name: 'first', annotations: { '@name@/label': 'web' } };
@decorator@  const result = run(guest, { primary: { metadata } }).complete();
@decorator@  assert.deepEqual(result.object(PRIMARY, 'first').metadata?.labels, { '@name@': 'web' });
@decorator@  assert.deepEqual(result.policies(PRIMARY, 'first'), ['merge']);
@decorator@});
@decorator@
@decorator@test('run fails when the annotation is not the value of a label', () => {
@decorator@  for (const label of ['not a label', 'a\n', '-a', 'a'.repeat(64)]) {
@decorator@    const metadata = { name: 'first', annotations: { '@name@/label': label } };
@decorator@    run(guest, { primary: { metadata } }).failed('InvalidAnnotation');
@decorator@  }
@decorator@});
@decorator@
@decorator@test('object without the annotation is not touched', () => {
@decorator@  const result = run(guest, { primary: { metadata: { name: 'first' } } }).complete();
@decorator@  assert.deepEqual(result.document, {});
@decorator@});
