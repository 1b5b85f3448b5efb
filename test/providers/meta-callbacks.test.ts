import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { answerMetaChallenge, isMetaSignature, readMetaCallback } from '../../src/providers/meta/callbacks.ts';

const SECRET = 'app-secret';
const sign = (body: Buffer, secret = SECRET) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

describe('a signature', () => {
  const body = Buffer.from('{"entry":[],"text":"\\u00fc \\/"}');

  test('with the app’s secret over the exact bytes is valid', () => {
    assert.equal(isMetaSignature(SECRET, body, sign(body)), true);
    assert.equal(
      isMetaSignature('key', Buffer.from('The quick brown fox jumps over the lazy dog'), `sha256=${FOX}`),
      true,
    );
  });

  const same = Buffer.from(JSON.stringify(JSON.parse(body.toString())));
  for (const [name, wrong] of Object.entries({
    'of another secret': () => isMetaSignature('other', body, sign(body)),
    'without a secret': () => isMetaSignature('', body, sign(body, '')),
    'over another body': () => isMetaSignature(SECRET, Buffer.from(`${body.toString()} `), sign(body)),
    'over the same JSON in other bytes': () => isMetaSignature(SECRET, same, sign(body)),
    'that is cut off': () => isMetaSignature(SECRET, body, sign(body).slice(0, -1)),
    'by SHA-1': () => isMetaSignature(SECRET, body, sign(body).replace('sha256', 'sha1')),
    'that is missing': () => isMetaSignature(SECRET, body, undefined),
  })) {
    test(`${name} is wrong`, () => {
      assert.equal(wrong(), false);
    });
  }

  test('is wrong over any other bytes', () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(bytes, fc.nat(), fc.integer({ min: 1, max: 255 }), (given, place, change) => {
        const good = Buffer.from(given);
        const tampered = Buffer.from(given);
        const at = place % tampered.length;
        tampered[at] = (tampered[at] as number) ^ change;
        assert.equal(isMetaSignature(SECRET, good, sign(good)), true);
        assert.equal(isMetaSignature(SECRET, tampered, sign(good)), false);
      }),
    );
  });
});

/** A published example of HMAC-SHA256. */
const FOX = 'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8';

test('answers a challenge with the right token only', () => {
  const query = { 'hub.mode': 'subscribe', 'hub.verify_token': 'token', 'hub.challenge': '1158201444' };
  assert.equal(answerMetaChallenge('token', query), '1158201444');
  for (const [token, change] of [
    ['other', {}],
    ['', { 'hub.verify_token': '' }],
    ['token', { 'hub.mode': 'unsubscribe' }],
    ['token', { 'hub.verify_token': 'toke' }],
    ['token', { 'hub.verify_token': ['token'] }],
    ['token', { 'hub.challenge': undefined }],
    ['token', { 'hub.challenge': ['1', '2'] }],
  ] as const)
    assert.equal(answerMetaChallenge(token, { ...query, ...change }), undefined);
});

describe('a callback', () => {
  const post = (...values: unknown[]) =>
    Buffer.from(
      JSON.stringify({
        object: 'whatsapp_business_account',
        entry: [{ id: '1', changes: values.map((value) => ({ field: 'messages', value })) }],
      }),
    );
  const status = (fields: object) => ({
    id: 'wamid.1',
    status: 'sent',
    timestamp: '1750857384',
    recipient_id: '4915112345678',
    ...fields,
  });
  const report = { messageId: 'wa_1', providerMessageId: 'wamid.1' };

  for (const [word, change] of Object.entries({ sent: 'sent', delivered: 'delivered', read: 'read', played: 'read' })) {
    test(`${word}: ${change}`, () => {
      const body = post({
        statuses: [status({ status: word, biz_opaque_callback_data: 'wa_1' })],
        metadata: { phone_number_id: '7' },
      });
      assert.deepEqual(readMetaCallback(body), [
        { ...report, change, dedupeKey: `wamid.1 ${change}`, endpoints: { phoneNumberId: '7' } },
      ]);
    });
  }

  const details = { error_data: { details: 'Why.' } };
  for (const [errors, error, errorCode] of [
    [
      [{ code: 131_026, title: 'Message undeliverable', message: 'Message undeliverable', ...details }],
      ': Why (error 131026).',
      '131026',
    ],
    [[{ code: 131_047, title: 'Re-engagement message' }], ': Re-engagement message (error 131047).', '131047'],
    [[{ code: 1 }], ' (error 1).', '1'],
    [undefined, '.', undefined],
    [[null, 7], '.', undefined],
    [[{ code: 'x', title: 'a\0b', error_data: null }], '.', undefined],
  ] as const) {
    test(`failed, with ${JSON.stringify(errors)}`, () => {
      const body = post({ statuses: [status({ status: 'failed', biz_opaque_callback_data: 'wa_1', errors })] });
      const expected = {
        ...report,
        change: 'failed',
        dedupeKey: 'wamid.1 failed',
        error: `Meta could not deliver it${error}`,
        endpoints: { phoneNumberId: '' },
      };
      assert.deepEqual(readMetaCallback(body), [{ ...expected, ...(errorCode !== undefined && { errorCode }) }]);
    });
  }

  test('reports on several messages in order', () => {
    const body = Buffer.from(
      JSON.stringify({
        entry: [
          { changes: [{ field: 'messages', value: { statuses: [status({ status: 'read' }), status({})] } }] },
          {
            changes: [
              { field: 'messages', value: { messages: [{ id: 'wamid.in', type: 'text' }] } },
              { field: 'account_update', value: { statuses: [status({ id: 'no' })] } },
              { field: 'messages', value: { statuses: [status({ id: 'wamid.2', status: 'delivered' })] } },
            ],
          },
        ],
      }),
    );
    assert.deepEqual(
      readMetaCallback(body).map(({ dedupeKey, messageId }) => [dedupeKey, messageId]),
      [
        ['wamid.1 read', undefined],
        ['wamid.1 sent', undefined],
        ['wamid.2 delivered', undefined],
      ],
    );
  });

  test('is ignored if it cannot be understood', () => {
    for (const body of ['', '<html>', '7', 'null', '[]', '{}', '{"entry":7}', '{"entry":[null,{"changes":[7]}]}'])
      assert.deepEqual(readMetaCallback(Buffer.from(body)), [], body);
    for (const value of [
      null,
      {},
      { statuses: {} },
      { statuses: [null, 7, {}] },
      { statuses: [status({ id: '' })] },
      { statuses: [status({ id: 'a\0' })] },
      { statuses: [status({ status: 'deleted' })] },
      { statuses: [status({ status: 'constructor' })] },
    ])
      assert.deepEqual(readMetaCallback(post(value)), [], JSON.stringify(value));
  });

  test('never throws', () => {
    fc.assert(
      fc.property(fc.json(), (value) => {
        readMetaCallback(Buffer.from(value));
        readMetaCallback(post(JSON.parse(value)));
        readMetaCallback(post({ statuses: [JSON.parse(value)] }));
      }),
    );
  });
});
