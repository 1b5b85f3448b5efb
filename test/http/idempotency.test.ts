import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type Answer, assertRefused, bodyOf, inFuture, useService } from './service.ts';
import { head, sendBytes } from './socket.ts';

/** The seven rules of Idempotency-Key. */
const service = await useService();
const ours = await service.organization();

type Json = Record<string, unknown>;
let count = 0;
const newKey = () => `key ${++count}`;

function send(key: string, json: unknown = ours.mail(), by = ours): Promise<Answer> {
  return by.call('POST', '/v1/emails', { json, headers: { 'idempotency-key': key } });
}

function sendBatch(key: string, emails: unknown[]): Promise<Answer> {
  return ours.call('POST', '/v1/emails/batch', { json: { emails }, headers: { 'idempotency-key': key } });
}

const isReplay = ({ headers }: Answer) => headers['idempotent-replayed'] === 'true';

function assertFirst(answer: Answer): string {
  assert.equal(answer.headers['idempotent-replayed'], undefined);
  return bodyOf<{ id: string }>(answer, 202).id;
}

function assertReplay(answer: Answer, first: Answer): void {
  assert.equal(answer.status, 202, answer.text);
  assert.ok(isReplay(answer), 'Idempotent-Replayed');
  assert.equal(answer.text, first.text, 'the first response again');
  assert.equal(answer.headers['content-type'], first.headers['content-type']);
}

async function emails(): Promise<number> {
  const { rows } = await service.pool.query<{ count: number }>('SELECT count(*)::int FROM emails');
  return rows[0]?.count ?? 0;
}

/** Makes the stored response of a key older. */
async function makeOlder(key: string, interval: string): Promise<void> {
  const { rowCount } = await service.pool.query(
    `UPDATE idempotency_keys SET created_at = now() - $2::interval WHERE key = $1`,
    [key, interval],
  );
  assert.equal(rowCount, 1);
}

describe('rule 1: 1 to 256 characters', () => {
  const printable = String.fromCharCode(...Array.from({ length: 0x5e }, (_, i) => 0x21 + i));
  for (const [name, key] of [
    ['1 character', 'a'],
    ['256 characters of four bytes each', '👋'.repeat(256)],
    ['all of printable ASCII', printable],
    ['a tab and characters outside ASCII', 'clé\t漢'],
  ] as const) {
    it(`202: ${name}`, async () => {
      const json = ours.mail();
      const encoded = Buffer.from(key).toString('latin1');
      const first = await send(encoded, json);
      assertFirst(first);
      assertReplay(await send(encoded, json), first);
      const { rowCount } = await service.pool.query('SELECT FROM idempotency_keys WHERE key = $1', [key]);
      assert.equal(rowCount, 1);
    });
  }

  for (const [name, key] of [
    ['empty', ''],
    ['spaces, which HTTP trims', '   '],
    ['257 characters', 'b'.repeat(257)],
    ['257 characters of four bytes each', Buffer.from('👋'.repeat(257)).toString('latin1')],
  ] as const) {
    it(`400: ${name}`, async () => {
      assertRefused(await send(key), 400, 'invalid_idempotency_key');
      assertRefused(await sendBatch(key, [ours.mail()]), 400, 'invalid_idempotency_key');
    });
  }

  it('400: a control character', async () => {
    const answer = await sendBytes(service.port, head('/v1/emails', ours.key, `Idempotency-Key: a\x01b`));
    assert.equal(answer.status, 400);
  });

  it('400: two headers, equal or not', async () => {
    const raw = JSON.stringify(ours.mail());
    for (const other of ['a', 'b']) {
      const lines = ['Content-Type: application/json', `Content-Length: ${raw.length}`];
      const request = head('/v1/emails', ours.key, ...lines, 'Idempotency-Key: a', `idempotency-key: ${other}`);
      assertRefused(await sendBytes(service.port, request + raw), 400, 'invalid_idempotency_key');
    }
  });
});

describe('rule 2: keys belong to the organization', () => {
  it('all API keys of an organization share them', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const first = await send(key, json);
    assertFirst(first);
    const other = await ours.addKey('sending_access');
    const call = { key: other, json, headers: { 'idempotency-key': key } };
    assertReplay(await service.call('POST', '/v1/emails', call), first);
  });

  it('another organization has separate keys', async () => {
    const [key, others] = [newKey(), await service.organization()];
    const id = assertFirst(await send(key));
    assert.notEqual(assertFirst(await send(key, others.mail(), others)), id);
  });
});

describe('rule 3: same key and same body', () => {
  it('returns the first response under a new request id and queues nothing', async () => {
    const [key, json] = [newKey(), ours.mail({ scheduled_at: inFuture({ hours: 1 }) })];
    const first = await send(key, json);
    assertFirst(first);
    const [stored, woken] = [await emails(), service.wakes()];
    assertReplay(await send(key, json), first);
    assert.deepEqual([await emails(), service.wakes()], [stored, woken]);
  });

  it('returns the first id of a batch', async () => {
    const [key, batch] = [newKey(), [ours.mail(), ours.mail({ scheduled_at: inFuture({ hours: 1 }) })]];
    const first = await sendBatch(key, batch);
    assertFirst(first);
    const stored = await emails();
    assertReplay(await sendBatch(key, batch), first);
    assert.equal(await emails(), stored);
  });

  // test/http/fingerprint.test.ts has every notation.
  it('returns the first response for an equal body in another notation', async () => {
    const json: Json = ours.mail({ subject: 'Café/A', headers: { A: '1', B: '2' } });
    const key = newKey();
    const first = await send(key, json);
    const reversed = Object.fromEntries(Object.entries({ ...json, headers: { B: '2', A: '1' } }).reverse());
    const raw = JSON.stringify(reversed, null, 4).replace('Café/A', '\\u0043af\\u00E9\\/\\u0041');
    // Another parser reads a large body.
    for (const each of [raw, raw + ' '.repeat(200_000)]) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': key };
      assertReplay(await ours.call('POST', '/v1/emails', { raw: each, headers }), first);
    }
  });

  it('is checked before the fields: after the scheduled time and the deletion of the domain', async () => {
    const [key, scheduled] = [newKey(), ours.mail({ scheduled_at: inFuture({ ms: 1_500 }) })];
    const first = await send(key, scheduled);
    assertFirst(first);
    await eventually('the time has passed', async () => (await send(newKey(), scheduled)).status === 422);
    assertReplay(await send(key, scheduled), first);

    const others = await service.organization();
    const call = { json: { emails: [others.mail()] }, headers: { 'idempotency-key': 'batch' } };
    const batched = await others.call('POST', '/v1/emails/batch', call);
    assertFirst(batched);
    await service.pool.query('DELETE FROM domains WHERE org_id = $1', [others.id]);
    assertRefused(await others.send(), 403, 'domain_not_found', 'from');
    assertReplay(await others.call('POST', '/v1/emails/batch', call), batched);
  });
});

describe('rule 4: same key, another request', () => {
  it('returns 409 for another body and remembers the first', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const first = await send(key, json);
    for (const change of [{ text: 'Hi there. ' }, { cc: 'x@example.net' }, { to: [json['to']] }]) {
      assertRefused(await send(key, { ...json, ...change }), 409, 'invalid_idempotent_request');
    }
    assertReplay(await send(key, json), first);
  });

  it('returns 409 before the fields are checked', async () => {
    const key = newKey();
    assertFirst(await send(key));
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    for (const raw of ['{}', 'null', '{"__proto__":1}', `{"to":[${'{},'.repeat(50_000)}{}]}`]) {
      assertRefused(await ours.call('POST', '/v1/emails', { raw, headers }), 409, 'invalid_idempotent_request');
    }
  });

  it('returns 409 for the same key and body on the other endpoint', async () => {
    const json = ours.mail();
    for (const [body, path, other] of [
      [json, '/v1/emails', '/v1/emails/batch'],
      [{ emails: [json] }, '/v1/emails/batch', '/v1/emails'],
    ] as const) {
      const call = { json: body, headers: { 'idempotency-key': newKey() } };
      assertFirst(await ours.call('POST', path, call));
      assertRefused(await ours.call('POST', other, call), 409, 'invalid_idempotent_request');
    }
  });
});

describe('rule 5: 50 concurrent requests with one key', () => {
  for (const [name, post] of [
    ['emails', (key: string, mail: Json) => send(key, mail)],
    ['batches', (key: string, mail: Json) => sendBatch(key, Array(300).fill(mail) as Json[])],
  ] as const) {
    it(`${name}: one is executed, the others return 409 or the replay`, async () => {
      const [key, mail, stored] = [newKey(), ours.mail(), await emails()];
      const answers = await Promise.all(Array.from({ length: 50 }, () => post(key, mail)));
      const accepted = answers.filter(({ status }) => status === 202);
      assert.equal(accepted.filter((answer) => !isReplay(answer)).length, 1);
      assert.equal(new Set(accepted.map(({ text }) => text)).size, 1);
      for (const answer of answers) {
        if (answer.status !== 202) assertRefused(answer, 409, 'concurrent_idempotent_requests');
      }
      assert.equal(await emails(), stored + (name === 'emails' ? 1 : 300));
      assertReplay(await post(key, mail), accepted[0] as Answer);
    });
  }
});

describe('rule 6: the key is free after a 4xx or 5xx', () => {
  for (const [name, bad, status] of [
    ['422 for a field', { subject: '' }, 422],
    ['422 for a time', { scheduled_at: inFuture({ hours: -1 }) }, 422],
    ['403 for a domain', { from: 'a@unknown.example' }, 403],
  ] as const) {
    it(name, async () => {
      const [key, json] = [newKey(), ours.mail()];
      assert.equal((await send(key, { ...json, ...bad })).status, status);
      assert.equal((await sendBatch(key, [json, { ...json, ...bad }])).status, status);
      assertFirst(await send(key, json));
    });
  }

  it('400 for a body that is not JSON, 422 for one that the parser refuses to build', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    assertRefused(await ours.call('POST', '/v1/emails', { raw: '{', headers }), 400, 'invalid_json');
    for (const raw of ['{"__proto__":1}', `{"to":[${'{},'.repeat(50_000)}{}]}`]) {
      const answer = await ours.call('POST', '/v1/emails', { raw, headers });
      assert.equal(answer.status, 422, answer.text);
    }
    assertFirst(await send(key, json));
  });

  it('500', async () => {
    const [key, json] = [newKey(), ours.mail()];
    await service.pool.query('ALTER TABLE email_bodies RENAME TO elsewhere');
    for (const answer of [await send(key, json), await sendBatch(key, [json])]) assert.equal(answer.status, 500);
    await service.pool.query('ALTER TABLE elsewhere RENAME TO email_bodies');
    assertFirst(await send(key, json));
  });
});

describe('rule 7: remembered for 24 hours', () => {
  it('returns the first response until then, and sends again from then on', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const first = await send(key, json);
    await makeOlder(key, '23 hours 59 minutes');
    assertReplay(await send(key, json), first);
    await makeOlder(key, '24 hours');
    const second = await send(key, json);
    assert.notEqual(assertFirst(second), (first.body as Json)['id']);
    assertReplay(await send(key, json), second);
  });
});

it('other operations ignore Idempotency-Key', async () => {
  const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
  const answer = await ours.call('POST', `/v1/emails/${id}/cancel`, { headers: { 'idempotency-key': '' } });
  assert.equal(answer.status, 200);
});
