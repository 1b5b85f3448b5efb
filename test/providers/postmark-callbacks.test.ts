import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parsePostmarkCallback } from '../../src/providers/postmark-callbacks.ts';

/** Shaped as the Delivery record on Postmark's page about that webhook. */
const DELIVERY = {
  RecordType: 'Delivery',
  ServerID: 23,
  MessageStream: 'outbound',
  MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
  Recipient: 'john@example.com',
  Tag: '',
  DeliveredAt: '2026-03-01T09:30:00.0000000Z',
  Details: 'smtp;250 2.0.0 OK',
  Metadata: { email: 'em_1', call: 'call_1' },
};

function dedupeKey(body: unknown): string | undefined {
  const report = parsePostmarkCallback(body);
  return typeof report === 'object' ? report.email.dedupe_key : undefined;
}

describe('a callback of Postmark', () => {
  test('about a delivery names our email and what makes it the same report', () => {
    assert.deepEqual(parsePostmarkCallback(DELIVERY), {
      change: 'delivered',
      email: {
        id: 'em_1',
        dedupe_key: 'Delivery 883953f4-6105-42a2-a16a-77a8eac79483 john@example.com 2026-03-01T09:30:00.0000000Z',
      },
    });
  });

  test('about another recipient, message or time is another report', () => {
    const keys = [{}, { Recipient: 'j@example.com' }, { MessageID: 'x' }, { DeliveredAt: '2026-03-01T09:30:01Z' }].map(
      (fields) => dedupeKey({ ...DELIVERY, ...fields }),
    );
    assert.equal(new Set(keys).size, 4);
  });

  for (const [name, body] of [
    ['nothing', undefined],
    ['null', null],
    ['a text', 'Delivery'],
    ['a list', [DELIVERY]],
    ['another record', { ...DELIVERY, RecordType: 'Open' }],
  ] as const) {
    test(`that is ${name} is not understood`, () => {
      assert.equal(parsePostmarkCallback(body), undefined);
    });
  }

  for (const [name, metadata] of [
    ['no metadata', undefined],
    ['null metadata', null],
    ['metadata of others', { order: '7' }],
    ['an id that is no text', { email: 7 }],
  ] as const) {
    test(`about a delivery with ${name} is not about our email`, () => {
      assert.equal(parsePostmarkCallback({ ...DELIVERY, Metadata: metadata }), 'foreign');
    });
  }
});
