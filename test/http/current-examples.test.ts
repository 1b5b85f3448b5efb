import assert from 'node:assert/strict';
import { it } from 'node:test';
import { makeCurrentDescription } from '../../src/http/docs/current-examples.ts';

const DESCRIPTION = {
  from: 'Example <hello@example.com>',
  created_at: '2026-03-01T09:30:00.000Z',
  scheduled_at: ['2026-03-03T08:00:00.000Z', '2026-03-03T09:00:00+01:00'],
  domain: 'mail.example.com',
};

it('moves example times so that a scheduled time is tomorrow, whenever it is read', () => {
  let now = Date.parse('2031-12-30T23:59:59.999Z');
  const describe = makeCurrentDescription(
    () => DESCRIPTION,
    undefined,
    () => now,
  );
  const read = () => JSON.parse(describe()) as typeof DESCRIPTION;
  assert.deepEqual(read(), {
    ...DESCRIPTION,
    created_at: '2031-12-29T09:30:00.000Z',
    scheduled_at: ['2031-12-31T08:00:00.000Z', '2031-12-31T09:00:00+01:00'],
  });
  now++;
  assert.deepEqual(read().scheduled_at, ['2032-01-01T08:00:00.000Z', '2032-01-01T09:00:00+01:00']);
});

it('names the given domain as that of the sender, and nowhere else', () => {
  const text = makeCurrentDescription(() => DESCRIPTION, 'demo.example')();
  const { from, domain } = JSON.parse(text) as typeof DESCRIPTION;
  assert.deepEqual({ from, domain }, { from: 'Example <hello@demo.example>', domain: 'mail.example.com' });
});
