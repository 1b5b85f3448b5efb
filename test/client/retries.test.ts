import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { type Options, Sendwright, SendwrightError } from '../../client/index.ts';

interface Asked {
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

/** A client of an API that answers each request as the next step says, and what was asked of it. */
async function scripted(t: TestContext, steps: readonly Step[], options: Partial<Options> = {}) {
  const asked: Asked[] = [];
  const server = createServer(({ method, headers }, response) => {
    const step = steps[asked.length] ?? refusal(500, 'internal_error');
    asked.push({ method, headers, at: performance.now() });
    step(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { sendwright: new Sendwright({ baseUrl, apiKey: 'sw_live_1', ...options }), asked };
}

const keys = (asked: readonly Asked[]) => new Set(asked.map(({ headers }) => headers['idempotency-key']));

for (const [what, step] of [
  ['an outage', OUTAGE],
  ['a lost connection', GONE],
  ['its own first try still running', refusal(409, 'concurrent_idempotent_requests')],
  ['a rate limit', refusal(429, 'rate_limit_exceeded', { 'retry-after': '0' })],
] as const) {
  test(`sending is tried again after ${what}, under one key`, async (t) => {
    const { sendwright, asked } = await scripted(t, [step, DONE]);
    assert.equal((await sendwright.emails.send(EMAIL)).id, 'em_1');
    assert.equal(asked.length, 2);
    assert.equal(keys(asked).size, 1);
    assert.match(String(asked[0]?.headers['idempotency-key']), /^[\da-f-]{36}$/);
  });
}

test('reading is tried again, without a key; so is a change', async (t) => {
  const { sendwright, asked } = await scripted(t, [GONE, OUTAGE, DONE, GONE, DONE]);
  await sendwright.emails.get('em_1');
  await sendwright.emails.reschedule('em_1', '2026-03-01T09:30:00Z');
  assert.deepEqual([asked.length, ...keys(asked)], [5, undefined]);
});

test('what might be done twice is not tried again, unless the answer says that nothing was done', async (t) => {
  const { sendwright, asked } = await scripted(t, [
    OUTAGE,
    GONE,
    refusal(429, 'rate_limit_exceeded', { 'retry-after': '0' }),
    DONE,
  ]);
  await assert.rejects(sendwright.keys.create({ preset: 'read_only' }), { code: 'unavailable', retryAfter: 0 });
  await assert.rejects(sendwright.emails.cancel('em_1'), { code: 'no_answer', status: undefined });
  await sendwright.emails.cancel('em_1');
  assert.equal(asked.length, 4);
});

test('a refusal is final, and so is a quota that is used up', async (t) => {
  const steps = [refusal(422, 'validation_error'), refusal(429, 'quota_exceeded', { 'retry-after': '0' })];
  const { sendwright, asked } = await scripted(t, steps);
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'validation_error', message: 'it is validation_error' });
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'quota_exceeded' });
  assert.equal(asked.length, 2);
});

test('Retry-After is waited for; one that is too long is told', async (t) => {
  const late = (seconds: number) => refusal(429, 'rate_limit_exceeded', { 'retry-after': String(seconds) });
  const { sendwright, asked } = await scripted(t, [late(1), DONE, late(61)]);
  await sendwright.emails.send(EMAIL);
  const [first, second] = asked.map(({ at }) => at) as [number, number];
  assert.ok(second - first >= 990, `it came after ${second - first} ms`);
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'rate_limit_exceeded', retryAfter: 61 });
  assert.equal(asked.length, 3);
});

test('after the last try it throws what that came to', async (t) => {
  const { sendwright, asked } = await scripted(t, [OUTAGE, OUTAGE, GONE], { retries: 2 });
  await assert.rejects(sendwright.emails.send(EMAIL), { code: 'no_answer' });
  assert.equal(asked.length, 3);
});

test('a try that takes too long is ended and told', async (t) => {
  let attempts = 0;
  // A busy machine may end an attempt before the request reaches the server, which therefore cannot count them.
  const countingFetch: typeof fetch = (input, init) => {
    attempts++;
    return fetch(input, init);
  };
  const { sendwright } = await scripted(t, [SILENT, SILENT], { timeout: 150, retries: 1, fetch: countingFetch });
  await assert.rejects(sendwright.emails.send(EMAIL), (error: unknown) => {
    assert.ok(error instanceof SendwrightError, String(error));
    assert.equal(error.code, 'timeout');
    assert.match(error.message, /^the API at http:\S+ has not answered within 0\.15 seconds$/);
    return true;
  });
  assert.equal(attempts, 2);
});

test('what a try whose answer was lost has deleted is deleted', async (t) => {
  const gone = refusal(404, 'not_found');
  const { sendwright } = await scripted(t, [GONE, gone, gone]);
  assert.equal(await sendwright.domains.delete('dm_1'), undefined);
  await assert.rejects(sendwright.domains.delete('dm_1'), { code: 'not_found' });
});

test('another server is noticed, and a redirect is not followed with the key', async (t) => {
  const html: Step = (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
  const away: Step = (response) => response.writeHead(302, { location: '/elsewhere' }).end();
  const { sendwright, asked } = await scripted(t, [html, away]);
  for (const status of [200, 302]) {
    await assert.rejects(sendwright.emails.get('em_1'), { code: 'unexpected_answer', status });
  }
  assert.equal(asked.length, 2);
});
