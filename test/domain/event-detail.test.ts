import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventDetail } from '../../src/domain/event-detail.ts';

test('an entry of a timeline without details keeps none', () => {
  assert.equal(eventDetail({ link: undefined, error: undefined }), undefined);
});

test('details are cut to 2,000 characters and stay valid Unicode', () => {
  const link = `${'a'.repeat(1_999)}😀`;
  const kept = eventDetail({ link, error: undefined });
  assert.deepEqual(Object.keys(kept ?? {}), ['link']);
  assert.equal(kept?.link?.length, 2_000);
  assert.ok(kept.link.isWellFormed(), 'no half of a character');
});
