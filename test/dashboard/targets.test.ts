import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTargetId, targetPath } from '../../src/dashboard/targets.ts';

test('a prefix that is a property of every object leads to no page', () => {
  const id = `constructor_${'0'.repeat(26)}`;
  assert.equal(isTargetId(id), false);
  // The audit log names the address of a suppression that was removed.
  for (const target of [id, 'constructor_a@example.com'])
    assert.equal(targetPath(target, new Set([target])), undefined);
});
