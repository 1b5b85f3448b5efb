import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type EmailFacts, type EventFacts, payloadOf } from '../../src/webhooks/payload.ts';

const EVENT: EventFacts = {
  id: 'evt_1',
  type: 'email.bounced',
  created_at: '2026-03-01T09:30:00.000Z',
  message_id: 'em_1',
  data: {
    status: 'bounced',
    recipient: 'ada@example.net',
    error: '550 no such user',
    bounceReason: 'mailbox_not_found',
  },
};
const EMAIL: EmailFacts = {
  batch_id: 'bt_1',
  from: 'Acme <hello@acme.example>',
  to: ['Ada <ada@example.net>', 'grace@example.net'],
  subject: 'Hello',
  tags: [{ name: 'kind', value: 'receipt' }],
};

interface Payload {
  id: string;
  type: string;
  created_at: string;
  data: Record<string, unknown> & { to: string[]; truncated?: string[] };
}
const read = (event: EventFacts, email?: EmailFacts) => JSON.parse(payloadOf(event, email)) as Payload;

describe('a payload', () => {
  test('names the event, the email by its own fields, and what happened, in camelCase', () => {
    assert.deepEqual(read(EVENT, EMAIL), {
      id: 'evt_1',
      type: 'email.bounced',
      created_at: '2026-03-01T09:30:00.000Z',
      data: {
        emailId: 'em_1',
        batchId: 'bt_1',
        from: 'Acme <hello@acme.example>',
        to: ['Ada <ada@example.net>', 'grace@example.net'],
        subject: 'Hello',
        tags: [{ name: 'kind', value: 'receipt' }],
        status: 'bounced',
        recipient: 'ada@example.net',
        error: '550 no such user',
        bounceReason: 'mailbox_not_found',
      },
    });
  });

  test('leaves out absent fields', () => {
    const { data } = read({ ...EVENT, data: { status: 'sent' } }, { ...EMAIL, batch_id: null });
    assert.deepEqual(Object.keys(data), ['emailId', 'from', 'to', 'subject', 'tags', 'status']);
  });

  test('contains only the id of an email whose record was deleted', () => {
    assert.deepEqual(read(EVENT).data, { emailId: 'em_1', ...EVENT.data });
  });

  test('without an email contains the event data only', () => {
    const happened = { suppressionId: 'sup_1', email: 'ada@example.net' };
    assert.deepEqual(read({ ...EVENT, message_id: null, data: happened }).data, happened);
  });
});

describe('a payload that would be too large', () => {
  const many = Array.from({ length: 50 }, (_, i) => `"${'n'.repeat(900)}" <u${i}@example.net>`);
  const tags = Array.from({ length: 10 }, (_, i) => ({ name: `${i}${'n'.repeat(255)}`, value: 'v'.repeat(256) }));

  test('drops recipients that do not fit, and lists the field as truncated', () => {
    const { data } = read(EVENT, { ...EMAIL, to: many, tags, subject: '😀'.repeat(998) });
    assert.deepEqual(data.truncated, ['to']);
    assert.deepEqual(data.to, many.slice(0, data.to.length));
    assert.ok(data.to.length > 3 && data.to.length < 50, `${data.to.length}`);
    assert.deepEqual(data['tags'], tags);
    assert.equal(data['subject'], '😀'.repeat(998));
  });

  test('drops tags and cuts the subject only when one recipient does not fit', () => {
    const huge = '😀'.repeat(998);
    const data = {
      ...EVENT.data,
      error: 'x'.repeat(9_000),
      click: { link: `https://example.com/${'x'.repeat(9_000)}` },
    };
    const payload = read({ ...EVENT, data }, { ...EMAIL, from: huge, to: [huge], tags, subject: huge });
    assert.deepEqual(payload.data.truncated, ['to', 'tags', 'subject']);
    assert.deepEqual(payload.data.to, [huge]);
    assert.equal(payload.data['subject'], '😀'.repeat(250));
    assert.equal(payload.data['error'], 'x'.repeat(4_000));
  });

  test('is cut to less than 20 kB whatever the email and the report contain', () => {
    const long = (length: number) => fc.string({ unit: 'binary', maxLength: length, size: 'max' });
    const email = fc.record({
      batch_id: fc.option(fc.constant(`bt_${'0'.repeat(26)}`)),
      from: long(998),
      to: fc.array(long(998), { minLength: 1, maxLength: 50, size: 'max' }),
      subject: long(998),
      tags: fc.constant(tags),
    });
    const data = fc.record({
      status: fc.constant('bounced'),
      recipient: long(250),
      error: long(3_000),
      link: long(3_000),
    });
    fc.assert(
      fc.property(email, data, (facts, { link, ...rest }) => {
        // Control characters never get into an address or a subject.
        const clean = (text: string) => text.replace(/\p{Cc}/gu, '😀').toWellFormed();
        const given = { ...facts, from: clean(facts.from), to: facts.to.map(clean), subject: clean(facts.subject) };
        const event = { ...EVENT, data: { ...rest, recipient: clean(rest.recipient), click: { link } } };
        const text = payloadOf(event, given);
        assert.ok(Buffer.byteLength(text) < 20_000, `${Buffer.byteLength(text)}`);
        assert.equal(text.toWellFormed(), text);
        const payload = JSON.parse(text) as Payload;
        assert.ok(payload.data.to.length >= 1);
        assert.equal(payload.data['emailId'], 'em_1');
      }),
      { numRuns: 200, endOnFailure: true },
    );
  });
});
