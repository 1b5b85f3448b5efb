import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { retryDelay } from '../../client/http.ts';
import { type Options, Sendwright, SendwrightError } from '../../client/index.ts';

interface SentRequest {
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly at: number;
}
type Step = (response: ServerResponse) => void;

const json = (status: number, body: unknown, headers = {}): Step => {
  return (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
};
const refusal = (status: number, code: string, headers = {}): Step =>
  json(status, { error: { code, message: `it is ${code}`, request_id: 'req_1' } }, headers);
const DONE = json(202, { id: 'em_1', status: 'queued', created_at: '', scheduled_at: null });
const GONE: Step = (response) => response.destroy();
const SILENT: Step = () => undefined;
const OUTAGE = refusal(503, 'unavailable', { 'retry-after': '0' });
const EMAIL = { from: 'a@example.com', to: 'b@example.net', subject: 'S', text: 'T' };

/** A client of an API that answers each request with the next step, and the requests. */
async function scripted(t: TestContext, steps: readonly Step[], options: Partial<Options> = {}) {
  const requests: SentRequest[] = [];
  const server = createServer(({ method, headers }, response) => {
    const step = steps[requests.length] ?? refusal(500, 'internal_error');
    requests.push({ method, headers, at: performance.now() });
    step(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { sendwright: new Sendwright({ baseUrl, apiKey: 'sw_live_1', ...options }), requests };
}

const keys = (requests: readonly SentRequest[]) => new Set(requests.map(({ headers }) => headers['idempotency-key']));

for (const [what, step] of [
  ['an outage', OUTAGE],
  ['a lost connection', GONE],
  ['an upload that was too slow', refusal(408, 'invalid_json')],
  ['its own first try still running', refusal(409, 'concurrent_idempotent_requests')],
  ['a rate limit', refusal(429, 'rate_limit_exceeded', { 'retry-after': '0' })],
] as const) {
  test(`retries a send after ${what} with one idempotency key`, async (t) => {
    const { sendwright, requests } = await scripted(t, [step, DONE]);
    assert.equal((await sendwright.emails.send(EMAIL)).id, 'em_1');
    assert.equal(requests.length, 2);
    assert.equal(keys(requests).size, 1);
    assert.match(String(requests[0]?.headers['idempotency-key']), /^[\da-f-]{36}$/);
  });
}

test('retries reads and changes without an idempotency key', async (t) => {
  const { sendwright, requests } = await scripted(t, [GONE, OUTAGE, DONE, GONE, DONE]);
  await sendwright.emails.get('em_1');
  await sendwright.emails.reschedule('em_1', '2026-03-01T09:30:00Z');
  assert.deepEqual([requests.length, ...keys(requests)], [5, undefined]);
});

test('retries a request that could take effect twice only if the answer excludes that', async (t) => {
  const { sendwright, requests } = await scripted(t, [
    OUTAGE,
    GONE,
    refusal(429, 'rate_limit_exceeded', { 'retry-after': '0' }),
    DONE,
  ]);
  await assert.rejects(sendwright.keys.create({ preset: 'read_only' }), { code: 'unavailable', retryAfter: 0 });
  await assert.rejects(sendwright.emails.cancel('em_1'), { code: 'no_answer', status: undefined });
  await sendwright.emails.cancel('em_1');
  assert.equal(requests.length, 4);
});

test('does not retry a refusal or an exceeded quota', async (t) => {
  const steps = [refusal(422, 'validation_error'), refusal(429, 'quota_exceeded', { 'retry-after': '0' })];
  const { sendwright, requests } = await scripted(t, steps);
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'validation_error', message: 'it is validation_error' });
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'quota_exceeded' });
  assert.equal(requests.length, 2);
});

test('refuses an idempotency key that no header can hold without a request', async (t) => {
  const { sendwright, requests } = await scripted(t, []);
  for (const idempotencyKey of ['a\nb', 'a\rb', 'a\0b', 'a\u007fb', 5 as unknown as string]) {
    await assert.rejects(sendwright.emails.send(EMAIL, { idempotencyKey }), {
      name: 'SendwrightError',
      code: 'invalid_argument',
      param: 'idempotencyKey',
    });
  }
  assert.equal(requests.length, 0);
});

test('waits for Retry-After, and throws if it is too long', async (t) => {
  const late = (seconds: number) => refusal(429, 'rate_limit_exceeded', { 'retry-after': String(seconds) });
  const { sendwright, requests } = await scripted(t, [late(1), DONE, late(61)]);
  await sendwright.emails.send(EMAIL);
  const [first, second] = requests.map(({ at }) => at) as [number, number];
  assert.ok(second - first >= 990, `it came after ${second - first} ms`);
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'rate_limit_exceeded', retryAfter: 61 });
  assert.equal(requests.length, 3);
});

test('waits for at most a minute before a retry, however many there are', () => {
  const lost = new SendwrightError('no answer', { code: 'no_answer' });
  for (const tries of [8, 20, 2_000]) assert.equal(retryDelay(lost, tries, true), 60_000);
  assert.ok((retryDelay(lost, 0, true) ?? 0) <= 750);
});

test('throws the error of the last attempt', async (t) => {
  const { sendwright, requests } = await scripted(t, [OUTAGE, OUTAGE, GONE], { retries: 2 });
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'no_answer' });
  assert.equal(requests.length, 3);
});

test('aborts an attempt after the timeout', async (t) => {
  let attempts = 0;
  // A busy machine may end an attempt before the request reaches the server, which therefore cannot count them.
  const countingFetch: typeof fetch = (input, init) => {
    attempts++;
    return fetch(input, init);
  };
  const { sendwright } = await scripted(t, [SILENT, SILENT], { timeout: 150, retries: 1, fetch: countingFetch });
  const message = /^the API at http:\S+ has not answered within 0\.15 seconds$/;
  await assert.rejects(sendwright.emails.send(EMAIL), { name: 'SendwrightError', code: 'timeout', message });
  assert.equal(attempts, 2);
});

test('takes 404 after a lost answer to DELETE as success', async (t) => {
  const gone = refusal(404, 'not_found');
  const { sendwright } = await scripted(t, [GONE, gone, gone]);
  await sendwright.domains.delete('dm_1');
  await assert.rejects(sendwright.domains.delete('dm_1'), { code: 'not_found' });
});

test('takes 404 after a lost answer to an erasure of content as an unknown email', async (t) => {
  const { sendwright } = await scripted(t, [GONE, refusal(404, 'not_found')]);
  await assert.rejects(sendwright.emails.eraseContent('em_1'), { code: 'not_found' });
});
