import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { EndpointConnection, PostAnswer } from '../../src/public-fetch/post.ts';
import { Unfetchable } from '../../src/public-fetch/unfetchable.ts';
import { attempt, isGone, isSuccess } from '../../src/webhooks/attempt.ts';
import { newSecret, formatSecret } from '../../src/webhooks/signature.ts';
import { assertRemaining } from '../support/remaining.ts';

const SECRET = newSecret();
const AT = Date.now();

/** A connection with one answer, and its requests. */
function connectionWithAnswer(answer: Partial<PostAnswer> | Error) {
  const posted: { headers: Readonly<Record<string, string>>; body: string }[] = [];
  const line: EndpointConnection = {
    post: async (headers, body) => {
      posted.push({ headers, body });
      if (answer instanceof Error) throw answer;
      return { status: 200, retryAfter: null, body: Buffer.alloc(0), ...answer };
    },
    close: () => undefined,
  };
  return { line, posted };
}

const tryOnce = (answer: Partial<PostAnswer> | Error) =>
  attempt(connectionWithAnswer(answer).line, 'evt_1', AT, '{}', [SECRET]);

test('an attempt is a signed JSON post under both sets of headers', async () => {
  const { line, posted } = connectionWithAnswer({});
  await attempt(line, 'evt_1', AT, '{"a":1}', [SECRET]);
  const [{ headers, body } = { headers: {}, body: '' }] = posted;
  assert.deepEqual(new Webhook(formatSecret(SECRET)).verify(body, headers), { a: 1 });
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['user-agent'], 'Sendwright');
  assert.equal(headers['service-signature'], headers['webhook-signature']);
});

describe('an attempt', () => {
  test('succeeds with a status of 200 to 299', async () => {
    for (const status of [200, 204, 299]) {
      const result = await tryOnce({ status, body: Buffer.from('fine') });
      assert.ok(isSuccess(result) && !isGone(result), `${status}`);
      assert.deepEqual([result.statusCode, result.response, result.error], [status, 'fine', null]);
    }
  });

  test('fails with any other status, explains a redirect, and is gone with 410', async () => {
    for (const status of [300, 302, 400, 404, 410, 429, 500]) {
      const result = await tryOnce({ status });
      assert.ok(!isSuccess(result), `${status}`);
      assert.equal(isGone(result), status === 410);
      assert.equal(result.error !== null, status < 400);
    }
  });

  test('fails without an answer, with the reason', async () => {
    const { durationMs, requestHeaders, ...result } = await tryOnce(new Unfetchable('it takes longer than 15 seconds'));
    assert.deepEqual(result, { statusCode: null, response: null, error: 'it takes longer than 15 seconds' });
    assert.ok(Number.isInteger(durationMs));
    assert.match(requestHeaders['webhook-signature'] ?? '', /^v1,/);
  });

  test('rethrows an error of ours', async () => {
    await assert.rejects(tryOnce(new TypeError('a bug')), TypeError);
  });
});

test('Retry-After is seconds or a date, a day at most', async () => {
  assert.equal((await tryOnce({ status: 503, retryAfter: '12' })).retryAfterMs, 12_000);
  assert.equal((await tryOnce({ status: 503, retryAfter: '999999' })).retryAfterMs, 86_400_000);
  const inAMinute = new Date(Date.now() + 60_000).toUTCString();
  assertRemaining((await tryOnce({ status: 503, retryAfter: inAMinute })).retryAfterMs, 60_000);
  for (const retryAfter of [null, 'soon', '-1', '1.5']) {
    assert.equal((await tryOnce({ status: 503, retryAfter })).retryAfterMs, undefined);
  }
});

test('stores an answer as text without NUL, cut between two characters', async () => {
  const long = Buffer.from(`x${'ä'.repeat(3_000)}`).subarray(0, 4_096);
  assert.equal((await tryOnce({ body: long })).response, `x${'ä'.repeat(2_047)}`);
  assert.equal((await tryOnce({ body: Buffer.from([0x61, 0, 0xff, 0x62]) })).response, 'a\uFFFD\uFFFDb');
  assert.equal((await tryOnce({ body: null })).response, null);
});
