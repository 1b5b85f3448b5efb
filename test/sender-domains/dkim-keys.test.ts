import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { makeDkimKey } from '../../src/sender-domains/dkim-keys.ts';

describe('DKIM keys', () => {
  it('leave threads to files and passwords, whatever their number', async () => {
    const KEYS = 16;
    let made = 0;
    const keys = Array.from({ length: KEYS }, () => makeDkimKey('org_1').then(() => made++));
    await readFile(import.meta.filename);
    const before = made;
    await Promise.all(keys);
    // With all threads taken, each step of reading a file waits for the keys that were asked for before.
    assert.ok(before < KEYS / 2, `${before} of ${KEYS} keys were made before a file was read`);
  });

  it('of one organization wait for those of another in rotation', async () => {
    const order: string[] = [];
    const ask = (orgId: string) => makeDkimKey(orgId).then(() => order.push(orgId));
    await Promise.all([...Array.from({ length: 6 }, () => ask('org_1')), ask('org_2')]);
    assert.ok(order.indexOf('org_2') <= 2, order.join());
  });
});
