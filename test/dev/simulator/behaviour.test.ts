import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mail, start } from './start.ts';

test('sets the named switches, resets the others, and changes nothing for an invalid one', async (t) => {
  const { postmarkUrl } = await start(t);
  const url = `${postmarkUrl}/simulator/behaviour`;
  const ask = async (method: string, input?: object) => {
    const body = input && JSON.stringify(input);
    const answer = await fetch(url, { method, ...(body && { body, headers: { 'content-type': 'application/json' } }) });
    return (await answer.json()) as Record<string, unknown>;
  };
  const normal = await ask('GET');
  assert.deepEqual(await ask('PUT', { latency_ms: 5, hang: true }), { ...normal, latency_ms: 5, hang: true });
  assert.deepEqual(await ask('PUT', { status: 503 }), { ...normal, status: 503 });
  for (const [input, reason] of [
    [
      { latency_ms: 5, fail_next: 'all' },
      /^fail_next: must be a whole number from 0 to 1000000, or true for every call$/,
    ],
    [{ repeat_reports: true }, /^repeat_reports: must be a whole number from 0 to 1000$/],
    [{ toString: 1 }, /^toString: is not a switch; there are latency_ms, /],
  ] as const) {
    assert.match(String((await ask('PUT', input))['error']), reason);
  }
  assert.deepEqual(await ask('GET'), { ...normal, status: 503 });
  assert.deepEqual(await ask('DELETE'), normal);
});

test('fails every call with a status and an error code until that is reset', async (t) => {
  const { behave, post, inbox } = await start(t);
  const send = async () => {
    const answer = await post('/email', mail());
    return [answer.status, ((await answer.json()) as { ErrorCode: number }).ErrorCode];
  };
  await behave({ fail_next: true, status: 422, error_code: 406 });
  for (let i = 0; i < 2; i++) assert.deepEqual(await send(), [422, 406]);
  await behave({ fail_next: 1, status: 401 });
  assert.deepEqual(await send(), [401, 10]);
  await behave({ fail_next: 1 });
  assert.equal((await post('/email/batch', [mail(), mail()])).status, 500);
  assert.deepEqual(await inbox(), []);
});
