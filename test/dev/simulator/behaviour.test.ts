import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mail, start } from './start.ts';

test('sets all switches together, shows them and resets them', async (t) => {
  const { behave, postmarkUrl } = await start(t);
  const url = `${postmarkUrl}/simulator/behaviour`;
  const normal = (await (await fetch(url)).json()) as object;
  assert.deepEqual(normal, {
    latency_ms: 0,
    fail_next: 0,
    status: 500,
    error_code: null,
    retry_after: null,
    hang: 0,
    fail_after_accept: 0,
    reset_after_accept: 0,
    reset_before_accept: 0,
    garbage: 0,
    search_lag_ms: 0,
    repeat_reports: 0,
    shuffle_reports: false,
  });
  assert.deepEqual(await (await behave({ latency_ms: 5, hang: true })).json(), {
    ...normal,
    latency_ms: 5,
    hang: true,
  });
  assert.deepEqual(await (await behave({ status: 503 })).json(), { ...normal, status: 503 });
  assert.deepEqual(await (await fetch(url, { method: 'DELETE' })).json(), normal);
});

test('names an invalid switch and changes nothing', async (t) => {
  const { behave, postmarkUrl } = await start(t);
  for (const [input, reason] of [
    [
      { latency_ms: 5, fail_next: 'all' },
      'fail_next: must be a whole number from 0 to 1000000, or true for every call',
    ],
    [{ repeat_reports: true }, 'repeat_reports: must be a whole number from 0 to 1000'],
    [{ toString: 1 }, /^toString: is not a switch; there are latency_ms, /],
  ] as const) {
    const answer = await behave(input);
    assert.equal(answer.status, 422);
    const { error } = (await answer.json()) as { error: string };
    if (typeof reason === 'string') assert.equal(error, reason);
    else assert.match(error, reason);
  }
  const now = (await (await fetch(`${postmarkUrl}/simulator/behaviour`)).json()) as { latency_ms: number };
  assert.equal(now.latency_ms, 0);
});

test('fails the next calls with a status, an ErrorCode and Retry-After', async (t) => {
  const { behave, post, inbox } = await start(t);
  const send = async () => {
    const answer = await post('/email', JSON.stringify(mail()));
    const { ErrorCode } = (await answer.json()) as { ErrorCode: number };
    return [answer.status, ErrorCode, answer.headers.get('retry-after')];
  };
  await behave({ fail_next: 2, status: 429, retry_after: 7 });
  assert.deepEqual(
    [await send(), await send(), await send()],
    [
      [429, 429, '7'],
      [429, 429, '7'],
      [200, 0, null],
    ],
  );
  await behave({ fail_next: 1, status: 401 });
  assert.deepEqual(await send(), [401, 10, null]);
  await behave({ fail_next: true, status: 422, error_code: 406 });
  assert.deepEqual(
    [await send(), await send()],
    [
      [422, 406, null],
      [422, 406, null],
    ],
  );
  await behave({ fail_next: 1 });
  const batch = await post('/email/batch', JSON.stringify([mail(), mail()]));
  assert.equal(batch.status, 500);
  assert.equal((await inbox()).length, 1);
});

test('resets a connection before or after the messages are stored', async (t) => {
  const { behave, post, inbox } = await start(t);
  const send = () => post('/email', JSON.stringify(mail()));
  const reset = (error: TypeError) => (error.cause as { code?: string }).code === 'ECONNRESET';
  await behave({ reset_before_accept: 1 });
  await assert.rejects(send(), reset);
  assert.equal((await inbox()).length, 0);
  await behave({ reset_after_accept: 1 });
  await assert.rejects(send(), reset);
  assert.equal((await inbox()).length, 1);
  assert.equal((await send()).status, 200);
});
