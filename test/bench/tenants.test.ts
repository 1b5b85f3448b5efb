import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CALLS } from '../../bench/tenant-calls.ts';
import { ROUTES } from '../../src/http/app.ts';

test('the bench of two tenants has a call of each route of the table, and of no other', () => {
  assert.deepEqual(Object.keys(CALLS).sort(), ROUTES.map(([method, path]) => `${String(method)} ${path}`).sort());
});

test('each call of the bench of two tenants matches the path of its route', () => {
  const stored = { emailId: 'em_1', batchId: 'bt_1', from: 'a@example.com', tagName: 'kind' };
  for (const [route, make] of Object.entries(CALLS)) {
    const pattern = (route.split(' ')[1] ?? '').replaceAll(/:\w+/g, '[^/]+');
    assert.match(make(stored).path, new RegExp(`^${pattern}(?:\\?.*)?$`), route);
  }
});
