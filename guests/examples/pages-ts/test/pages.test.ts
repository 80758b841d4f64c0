// Runs the guest with JSON texts, as the host does. The SDK validates all documents.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { run } from '@innkeeper/guest/testing';

import { CONFIG_MAP, pages } from '../src/pages.js';

const parameters = { footer: 'The end' };
const TEXT = '# Hello\n\nGood day\n\nThe end\n';

const page = (spec: { title?: string; copies?: string[] } = {}) => ({
  metadata: { name: 'hello', namespace: 'web' },
  spec: { title: 'Hello', body: 'Good day', ...spec },
});

test('page becomes a ConfigMap with its text', () => {
  const result = run(pages, { primary: page(), parameters }).complete();
  assert.equal(result.objects(CONFIG_MAP).length, 1);
  assert.deepEqual(result.object(CONFIG_MAP, 'hello').data, { 'page.md': TEXT });
  assert.deepEqual(result.status, { bytes: TEXT.length, written: 0 });
});

test('each copy becomes a ConfigMap of its own', () => {
  const result = run(pages, { primary: page({ copies: ['a', 'b'] }), parameters }).complete();
  const names = result.objects(CONFIG_MAP).map((one) => one.metadata?.name);
  assert.deepEqual(names, ['hello', 'hello-a', 'hello-b']);
});

test('condition follows the ConfigMaps that have the text', () => {
  const written = (name: string, text = TEXT) =>
    CONFIG_MAP.object({ name, namespace: 'web' }, { data: { 'page.md': text } });
  const primary = page({ copies: ['a'] });
  for (const [owned, status, message] of [
    [[written('hello')], 'False', '1 of 2 written'],
    [[written('hello'), written('hello-a', 'old')], 'False', '1 of 2 written'],
    [[written('hello'), written('hello-a')], 'True', ''],
  ] as const) {
    const condition = run(pages, { primary, parameters, owned: [...owned] }).condition('Published');
    assert.deepEqual([condition.status, condition.message], [status, message]);
  }
});

test('run fails permanently when the title has two lines', () => {
  const result = run(pages, { primary: page({ title: 'a\nb' }), parameters }).failed('BadTitle');
  assert.equal(result.message, 'spec.title: a title has one line');
  assert.ok(result.permanent);
});
