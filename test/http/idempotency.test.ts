import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answer, assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';
import { dial, head, speak } from './socket.ts';

/** Idempotency-Key: the seven rules of interface.md, decisions 1.4 and 3.8. */
let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

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
  assert.equal(answer.status, 202, answer.text);
  assert.equal(answer.headers['idempotent-replayed'], undefined);
  return (answer.body as { id: string }).id;
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

/** Moves what was answered under a key back in time. */
async function age(key: string, interval: string): Promise<void> {
  const { rowCount } = await service.pool.query(
    `UPDATE idempotency_keys SET created_at = now() - $2::interval WHERE key = $1`,
    [key, interval],
  );
  assert.equal(rowCount, 1);
}

describe('rule 1: 1 to 256 characters', () => {
  const all = (from: number, to: number) =>
    String.fromCharCode(...Array.from({ length: to - from }, (_, i) => from + i));
  for (const [what, key] of [
    ['1 character', 'a'],
    ['256 characters', 'b'.repeat(256)],
    ['256 characters of four bytes each', '👋'.repeat(256)],
    ['all of printable ASCII', all(0x21, 0x7f)],
    ['a tab inside', 'a\tb'],
    ['letters beyond ASCII', 'clé 漢'],
  ] as const) {
    it(`202: ${what}`, async () => {
      const json = ours.mail();
      const sent = Buffer.from(key).toString('latin1');
      const first = await send(sent, json);
      assertFirst(first);
      assertReplay(await send(sent, json), first);
      const { rowCount } = await service.pool.query('SELECT FROM idempotency_keys WHERE key = $1', [key]);
      assert.equal(rowCount, 1);
    });
  }

  for (const [what, key] of [
    ['empty', ''],
    ['spaces, which HTTP does not count', '   '],
    ['257 characters', 'b'.repeat(257)],
    ['257 characters of four bytes each', Buffer.from('👋'.repeat(257)).toString('latin1')],
    ['5,000 characters', 'b'.repeat(5_000)],
  ] as const) {
    it(`400: ${what}`, async () => {
      assertRefused(await send(key), 400, 'invalid_idempotency_key');
      assertRefused(await sendBatch(key, [ours.mail()]), 400, 'invalid_idempotency_key');
    });
  }

  it('202: bytes that are no UTF-8', async () => {
    const json = ours.mail();
    const first = await send('\xff\xfe', json);
    assertFirst(first);
    assertReplay(await send('\xff\xfe', json), first);
  });

  it('400: control characters, which HTTP does not carry', async () => {
    for (const control of ['\0', '\x01', '\x7f']) {
      const socket = await dial(service.port);
      socket.destroy();
      const answer = await speak(service.port, head('/v1/emails', ours.key, `Idempotency-Key: a${control}b`));
      assert.equal(answer.status, 400, JSON.stringify(control));
    }
  });

  it('400: given twice, the same or not', async () => {
    const raw = JSON.stringify(ours.mail());
    for (const other of ['a', 'b']) {
      const lines = ['Content-Type: application/json', `Content-Length: ${raw.length}`];
      const request = head('/v1/emails', ours.key, ...lines, 'Idempotency-Key: a', `idempotency-key: ${other}`);
      assertRefused(await speak(service.port, request + raw), 400, 'invalid_idempotency_key');
    }
  });

  it('no key: the same body is sent twice', async () => {
    const json = ours.mail();
    assert.notEqual(await ours.sent(json), await ours.sent(json));
  });
});

describe('rule 2: keys belong to the organization', () => {
  it('all of its API keys share them', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const first = await send(key, json);
    assertFirst(first);
    for (const preset of ['full_access', 'sending_access'] as const) {
      const other = await ours.addKey(preset);
      const call = { key: other, json, headers: { 'idempotency-key': key } };
      assertReplay(await service.call('POST', '/v1/emails', call), first);
    }
  });

  it('another organization has its own', async () => {
    const [key, others] = [newKey(), await service.organization()];
    const id = assertFirst(await send(key));
    assert.notEqual(assertFirst(await send(key, others.mail(), others)), id);
  });
});

describe('rule 3: same key and same body', () => {
  it('the first answer again, under a new request id; nothing is queued', async () => {
    const [key, json] = [newKey(), ours.mail({ scheduled_at: inFuture({ hours: 1 }) })];
    const first = await send(key, json);
    assertFirst(first);
    const [stored, woken] = [await emails(), service.wakes()];
    for (let i = 0; i < 3; i++) assertReplay(await send(key, json), first);
    assert.deepEqual([await emails(), service.wakes()], [stored, woken]);
  });

  it('a batch: the original batch id', async () => {
    const [key, batch] = [newKey(), [ours.mail(), ours.mail({ scheduled_at: inFuture({ hours: 1 }) })]];
    const first = await sendBatch(key, batch);
    assertFirst(first);
    const stored = await emails();
    assertReplay(await sendBatch(key, batch), first);
    assert.equal(await emails(), stored);
  });

  it('a body that is written in another way', async () => {
    const json: Json = ours.mail({ subject: 'Café/A', tags: [{ name: 'a', value: 'b' }], headers: { A: '1', B: '2' } });
    const key = newKey();
    const first = await send(key, json);
    const other = { ...json, tags: [{ value: 'b', name: 'a' }], headers: { B: '2', A: '1' } };
    for (const raw of [
      JSON.stringify(Object.fromEntries(Object.entries(json).reverse())),
      `${JSON.stringify(json, null, 4)}\n `,
      JSON.stringify(json).replace('Café/A', '\\u0043af\\u00E9\\/\\u0041'),
      JSON.stringify(other),
      // Read in slices.
      JSON.stringify(json) + ' '.repeat(200_000),
    ]) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': key };
      assertReplay(await ours.call('POST', '/v1/emails', { raw, headers }), first);
    }
  });

  it('is looked at before the fields: after the time has passed and the domain is gone', async () => {
    const [key, json] = [newKey(), ours.mail({ scheduled_at: inFuture({ ms: 3_000 }) })];
    const first = await send(key, json);
    assertFirst(first);
    await service.pool.query('SELECT pg_sleep(3.1)');
    assertRefused(await send(newKey(), json), 422, 'validation_error', 'scheduled_at');
    assertReplay(await send(key, json), first);

    const others = await service.organization();
    const [mail, batch] = [others.mail(), [others.mail()]];
    const sent = await send('single', mail, others);
    const call = { json: { emails: batch }, headers: { 'idempotency-key': 'batch' } };
    const batched = await others.call('POST', '/v1/emails/batch', call);
    assertFirst(sent);
    assertFirst(batched);
    await service.pool.query('DELETE FROM domains WHERE org_id = $1', [others.id]);
    assertRefused(await send('other', mail, others), 403, 'domain_not_found', 'from');
    assertReplay(await send('single', mail, others), sent);
    assertReplay(await others.call('POST', '/v1/emails/batch', call), batched);
  });
});

describe('rule 4: same key, another request', () => {
  it('409 for another body, and the first is remembered all the same', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const first = await send(key, json);
    for (const change of [
      { subject: 'Other' },
      { text: 'Hi there. ' },
      { cc: 'x@example.net' },
      { to: [json['to']] },
    ]) {
      assertRefused(await send(key, { ...json, ...change }), 409, 'invalid_idempotent_request');
    }
    assertReplay(await send(key, json), first);
  });

  it('409 before the fields are looked at', async () => {
    const key = newKey();
    assertFirst(await send(key));
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    for (const raw of ['{}', 'null', '{"__proto__":1}', `{"to":[${'{},'.repeat(50_000)}{}]}`]) {
      assertRefused(await ours.call('POST', '/v1/emails', { raw, headers }), 409, 'invalid_idempotent_request');
    }
  });

  it('409 on the other endpoint, both ways', async () => {
    const [single, batch, mail] = [newKey(), newKey(), ours.mail()];
    assertFirst(await send(single, mail));
    assertRefused(await sendBatch(single, [mail]), 409, 'invalid_idempotent_request');
    assertFirst(await sendBatch(batch, [mail]));
    assertRefused(await send(batch, mail), 409, 'invalid_idempotent_request');
  });
});

describe('rule 5: 50 requests at once with one key', () => {
  for (const [what, post] of [
    ['emails', (key: string, mail: Json) => send(key, mail)],
    ['batches', (key: string, mail: Json) => sendBatch(key, Array(300).fill(mail) as Json[])],
  ] as const) {
    it(`${what}: one 202, else 409 or the replay`, async () => {
      const [key, mail, stored] = [newKey(), ours.mail(), await emails()];
      const answers = await Promise.all(Array.from({ length: 50 }, () => post(key, mail)));
      const accepted = answers.filter(({ status }) => status === 202);
      assert.equal(accepted.filter((answer) => !isReplay(answer)).length, 1);
      assert.equal(new Set(accepted.map(({ text }) => text)).size, 1);
      for (const answer of answers) {
        if (answer.status !== 202) assertRefused(answer, 409, 'concurrent_idempotent_requests');
      }
      assert.equal(await emails(), stored + (what === 'emails' ? 1 : 300));
      assertReplay(await post(key, mail), accepted[0] as Answer);
    });
  }
});

describe('rule 6: after a 4xx or 5xx the key is free', () => {
  for (const [what, bad, status] of [
    ['422 a field', { subject: '' }, 422],
    ['422 a time', { scheduled_at: inFuture({ hours: -1 }) }, 422],
    ['403 a domain', { from: 'a@nobody.example' }, 403],
  ] as const) {
    it(what, async () => {
      const [key, json] = [newKey(), ours.mail()];
      for (let i = 0; i < 2; i++) assert.equal((await send(key, { ...json, ...bad })).status, status);
      assert.equal((await sendBatch(key, [json, { ...json, ...bad }])).status, status);
      assertFirst(await send(key, json));
    });
  }

  it('400, and a body that is not built', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    assertRefused(await ours.call('POST', '/v1/emails', { raw: '{', headers }), 400, 'invalid_json');
    for (const raw of [
      '{"__proto__":1}',
      `{"to":[${'{},'.repeat(50_000)}{}]}`,
      '['.repeat(9_999) + ']'.repeat(9_999),
    ]) {
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
  it('until then the first answer, from then on a new send', async () => {
    const [key, json] = [newKey(), ours.mail()];
    const first = await send(key, json);
    await age(key, '23 hours 59 minutes');
    assertReplay(await send(key, json), first);
    await age(key, '24 hours');
    const second = await send(key, json);
    assert.notEqual(assertFirst(second), (first.body as Json)['id']);
    assertReplay(await send(key, json), second);
  });

  it('also with another body, and as a batch', async () => {
    const key = newKey();
    assertFirst(await send(key));
    await age(key, '25 hours');
    assertFirst(await sendBatch(key, [ours.mail()]));
  });
});

describe('the order of checks (decisions 1.4)', () => {
  it('400 invalid_json, 400 invalid_idempotency_key, 409, 422', async () => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': '' };
    assertRefused(await ours.call('POST', '/v1/emails', { raw: '{', headers }), 400, 'invalid_json');
    for (const raw of ['{}', '{"__proto__":1}', `{"to":[${'{},'.repeat(50_000)}{}]}`, '[]']) {
      assertRefused(await ours.call('POST', '/v1/emails', { raw, headers }), 400, 'invalid_idempotency_key');
    }
    assertRefused(await service.call('POST', '/v1/emails', { headers }), 401, 'unauthorized');
    const key = await ours.addKey('read_only');
    assertRefused(await service.call('POST', '/v1/emails', { key, headers }), 403, 'insufficient_scope');
    const text = { 'content-type': 'text/plain', 'idempotency-key': '' };
    assertRefused(await ours.call('POST', '/v1/emails', { raw: 'x', headers: text }), 415, 'unsupported_media_type');
  });

  it('elsewhere the header is nobody’s business', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    const answer = await ours.call('POST', `/v1/emails/${id}/cancel`, { headers: { 'idempotency-key': '' } });
    assert.equal(answer.status, 200);
  });
});
