import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answer, assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';
import { addresses } from './send-table.ts';
import { findContent } from '../../src/store/emails/message-details.ts';

/** POST /v1/emails/batch: interface.md "Send Batch", decisions 5. */
let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
  await ours.addDomain('second.example');
  await ours.addDomain('pending.example', false);
});
after(() => service.close());

type Fields = Record<string, unknown>;

function post(emails: unknown, key = ours.key): Promise<Answer> {
  return service.call('POST', '/v1/emails/batch', { key, json: { emails } });
}

function mails(n: number, fields: Fields = {}): Fields[] {
  return Array.from({ length: n }, () => ours.mail(fields));
}

function idOf(answer: Answer, total: number): string {
  assert.equal(answer.status, 202, answer.text);
  const { id, ...rest } = answer.body as { id: string; created_at: string };
  assert.match(id, /^bt_[0-9a-z]{26}$/);
  assert.match(rest.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(rest, { total, status: 'queued', created_at: rest.created_at });
  return id;
}

/** Rows of each table that accepting an email writes, and of the batch's own. */
async function stored(): Promise<number[]> {
  // In one row: Postgres may read the parts of a union in parallel and give them in any order.
  const tables = ['emails', 'email_bodies', 'email_events', 'outbox', 'batches', 'batch_moves'];
  const { rows } = await service.pool.query<{ counts: number[] }>(
    `SELECT ARRAY[${tables.map((table) => `(SELECT count(*)::int FROM ${table})`).join()}] AS counts`,
  );
  return rows[0]?.counts ?? [];
}

async function members(id: string): Promise<Fields[]> {
  const { rows } = await service.pool.query<Fields>(
    `SELECT email.*, (SELECT count(*)::int FROM outbox WHERE message_id = email.id AND action = 'start') AS told,
            (SELECT array_agg(type) FROM email_events WHERE email_id = email.id) AS events
     FROM emails AS email WHERE batch_id = $1 ORDER BY id`,
    [id],
  );
  return rows;
}

/** Refused, and nothing of it stored. */
async function refuses(
  emails: unknown,
  ...refusal: [status: number, code: string, param?: string, says?: string]
): Promise<void> {
  const [before, woken] = [await stored(), service.wakes()];
  assertRefused(await post(emails), ...refusal);
  assert.deepEqual(await stored(), before, 'all or nothing');
  assert.equal(service.wakes(), woken);
}

describe('a batch that is accepted', () => {
  it('holds whole emails, in the order they were given, with a time and a domain of their own', async () => {
    const time = inFuture({ hours: 2 });
    const woken = service.wakes();
    const id = idOf(
      await post([
        ours.mail({
          subject: 'first',
          cc: 'c@example.net',
          tags: [{ name: 'a', value: 'b' }],
          headers: { 'X-A': 'b' },
        }),
        ours.mail({ subject: 'second', scheduled_at: time, reply_to: [], marketing: true }),
        ours.mail({ subject: 'third', from: 'a@Second.Example', html: null, text: 'third' }),
      ]),
      3,
    );
    assert.equal(service.wakes(), woken + 1);
    const [first, second, third] = await members(id);
    assert.deepEqual([first?.['subject'], second?.['subject'], third?.['subject']], ['first', 'second', 'third']);
    assert.deepEqual([first?.['status'], second?.['status'], third?.['status']], ['queued', 'scheduled', 'queued']);
    assert.deepEqual([first?.['events'], second?.['events']], [['email.queued'], ['email.scheduled']]);
    assert.deepEqual([first?.['told'], second?.['told'], third?.['told']], [1, 1, 1]);
    const shown = await ours.email(String(first?.['id']));
    assert.deepEqual(
      [shown['batch_id'], shown['cc'], shown['tags'], shown['headers']],
      [id, ['c@example.net'], [{ name: 'a', value: 'b' }], { 'X-A': 'b' }],
    );
    assert.deepEqual([second?.['scheduled_at'], second?.['marketing'], second?.['reply_to']], [time, true, null]);
    const content = await findContent(service.pool, service.deps.contents, ours.id, String(third?.['id']));
    assert.equal(content?.text, 'third');
  });

  it('of one, and of one more than a statement stores', async () => {
    for (const n of [1, 250, 251]) {
      const id = idOf(await post(mails(n)), n);
      assert.equal((await members(id)).length, n);
    }
  });

  it('of 10,000', async () => {
    const from = `a@${ours.domain}`;
    const emails = Array.from({ length: 10_000 }, (_, i) => ({
      from,
      to: 'a@example.net',
      subject: `${i}`,
      text: 'x',
    }));
    const id = idOf(await post(emails), 10_000);
    const all = await members(id);
    assert.deepEqual(
      all.map(({ subject }) => subject),
      emails.map(({ subject }) => subject),
    );
    assert.ok(all.every(({ told, status }) => told === 1 && status === 'queued'));
    assert.equal(new Set(all.map((each) => String(each['created_at']))).size, 1);
  });
});

describe('1 to 10,000 emails', () => {
  const small = { from: 'a@nobody.example', to: 'a@example.net', subject: 's', text: 't' };

  it('10,001 are too many, short or long', async () => {
    const says = 'must hold 1 to 10000 items';
    await refuses(Array(10_001).fill({}), 422, 'validation_error', 'emails', says);
    await refuses(Array(10_001).fill(small), 422, 'validation_error', 'emails', 'must hold at most 10000 items');
  });

  for (const [what, json, param] of [
    ['none', { emails: [] }, 'emails'],
    ['no field', {}, 'emails'],
    ['null', { emails: null }, 'emails'],
    ['an object', { emails: {} }, 'emails'],
    ['a text', { emails: 'x' }, 'emails'],
    ['an unknown field beside them', { emails: [small], name: 'x' }, 'name'],
    ['an array', [small], undefined],
  ] as const) {
    it(`422: ${what}`, async () => {
      assertRefused(await ours.call('POST', '/v1/emails/batch', { json }), 422, 'validation_error', param);
    });
  }

  it('400: no JSON, small or large', async () => {
    for (const raw of ['{"emails": [', `{"emails": [${'{},'.repeat(100_000)}`]) {
      const headers = { 'content-type': 'application/json' };
      assertRefused(await ours.call('POST', '/v1/emails/batch', { raw, headers }), 400, 'invalid_json');
    }
  });

  it('42 MB of nothing', async () => {
    const raw = `{"emails":[${'{},'.repeat(14_000_000)}{}]}`;
    const answer = await ours.call('POST', '/v1/emails/batch', {
      raw,
      headers: { 'content-type': 'application/json' },
    });
    assertRefused(answer, 422, 'validation_error', 'emails');
  });
});

const BAD: readonly (readonly [what: string, fields: Fields, param: string])[] = [
  ['an empty subject', { subject: '' }, 'subject'],
  ['a subject of 999', { subject: 's'.repeat(999) }, 'subject'],
  ['no from', { from: undefined }, 'from'],
  ['one bad address of two', { to: ['a@example.org', 'x'] }, 'to.1'],
  ['51 recipients', { to: addresses(51) }, 'to'],
  ['an unknown field', { foo: 1 }, 'foo'],
  ['a bad tag', { tags: [{ name: 'a b', value: 'v' }] }, 'tags.0.name'],
  ['a refused header', { headers: { From: 'x' } }, 'headers.From'],
  ['no body', { text: undefined }, 'html'],
  ['a time that is none', { scheduled_at: 'soon' }, 'scheduled_at'],
  ['a time that is past', { scheduled_at: inFuture({ hours: -1 }) }, 'scheduled_at'],
  ['a time 31 days ahead', { scheduled_at: inFuture({ days: 31 }) }, 'scheduled_at'],
  ['an attachment', { attachments: [{ filename: 'a.txt', content: 'QQ==' }] }, 'attachments'],
  ['no attachments, but the field', { attachments: [] }, 'attachments'],
  ['null for attachments', { attachments: null }, 'attachments'],
];

describe('all or nothing: emails.<index>.<field>: <problem>', () => {
  for (const [what, fields, param] of BAD) {
    it(`422: ${what}, in the first, a middle and the last place`, async () => {
      for (const index of [0, 300, 600]) {
        const emails = mails(601);
        emails[index] = ours.mail(fields);
        await refuses(emails, 422, 'validation_error', `emails.${index}.${param}`);
      }
    });
  }

  for (const [what, member] of [
    ['a text', 'x'],
    ['null', null],
    ['an array', []],
    ['a number', 5],
  ] as const) {
    it(`422: ${what} for an email`, async () => {
      await refuses([...mails(2), member], 422, 'validation_error', 'emails.2', 'must be an object');
    });
  }

  it('the first of several is told', async () => {
    const past = inFuture({ hours: -1 });
    const bad = [ours.mail({ scheduled_at: past }), ours.mail({ scheduled_at: past })];
    await refuses([...mails(300), ...bad], 422, 'validation_error', 'emails.300.scheduled_at', 'must be in the future');
    await refuses(
      [...mails(3), ours.mail({ to: 'x' }), ours.mail({ subject: '' })],
      422,
      'validation_error',
      'emails.3.to',
    );
  });

  it('a time that only the database can judge is told in its turn', async () => {
    const [past, far] = [inFuture({ hours: -1 }), inFuture({ days: 31 })];
    const [late, bad] = [ours.mail({ scheduled_at: past }), ours.mail({ subject: '' })];
    await refuses(
      [...mails(300), late, bad],
      422,
      'validation_error',
      'emails.300.scheduled_at',
      'must be in the future',
    );
    await refuses([bad, late], 422, 'validation_error', 'emails.0.subject');
    const early = ours.mail({ scheduled_at: far });
    await refuses(
      [early, late, bad],
      422,
      'validation_error',
      'emails.0.scheduled_at',
      'must be at most 30 days ahead',
    );
    const unknown = ours.mail({ from: 'a@nobody.example' });
    await refuses([unknown, bad], 422, 'validation_error', 'emails.1.subject');
    await refuses([unknown, late, bad], 422, 'validation_error', 'emails.1.scheduled_at');
  });

  it('a query parameter is refused as everywhere', async () => {
    const answer = await ours.call('POST', '/v1/emails/batch?x=1', { json: { emails: mails(1) } });
    assertRefused(answer, 422, 'validation_error', 'x');
  });

  it('the limits of each are those of a single email', async () => {
    const fullest = {
      to: addresses(50),
      cc: addresses(50),
      bcc: addresses(50),
      subject: 's'.repeat(998),
      html: 'h'.repeat(1_000_000),
      text: 't'.repeat(1_000_000),
      scheduled_at: inFuture({ days: 29 }),
    };
    idOf(await post([ours.mail(fullest), ours.mail(fullest)]), 2);
  });
});

describe('every from domain must be registered and verified', () => {
  for (const [domain, code] of [
    ['nobody.example', 'domain_not_found'],
    ['pending.example', 'domain_not_verified'],
    [`sub.second.example`, 'domain_not_found'],
  ] as const) {
    it(`403 ${code}: ${domain}, in the first, a middle and the last place`, async () => {
      for (const index of [0, 300, 600]) {
        const emails = mails(601);
        emails[index] = ours.mail({ from: `a@${domain}` });
        emails[600] = ours.mail({ from: `a@${domain}` });
        await refuses(emails, 403, code, `emails.${index}.from`);
      }
    });
  }

  it('a field of any email comes before the domain of any', async () => {
    const from = 'a@nobody.example';
    const late = ours.mail({ scheduled_at: inFuture({ hours: -1 }) });
    await refuses([ours.mail({ from }), ...mails(300), late], 422, 'validation_error', 'emails.301.scheduled_at');
    await refuses([ours.mail({ from }), ours.mail({ subject: '' })], 422, 'validation_error', 'emails.1.subject');
  });

  it('403 insufficient_scope: a key that is limited to other domains', async () => {
    const key = await ours.addKey('full_access', [ours.domain]);
    idOf(await post(mails(2), key), 2);
    const answer = await post([...mails(1), ours.mail({ from: 'a@second.example' })], key);
    assertRefused(answer, 403, 'insufficient_scope', 'emails.1.from');
  });

  it("403: another organization's domain", async () => {
    const others = await service.organization();
    await refuses([ours.mail({ from: `a@${others.domain}` })], 403, 'domain_not_found', 'emails.0.from');
  });
});

describe('who may send a batch', () => {
  it('403 insufficient_scope: a key that only reads', async () => {
    assertRefused(await post(mails(1), await ours.addKey('read_only')), 403, 'insufficient_scope');
  });
  it('202: a key that only sends', async () => {
    idOf(await post(mails(1), await ours.addKey('sending_access')), 1);
  });
  it('401 without a key', async () => {
    assertRefused(await service.call('POST', '/v1/emails/batch', { json: {} }), 401, 'unauthorized');
  });
});

describe('a batch of 10,000', () => {
  it('keeps nobody waiting: single emails are answered while it is read and stored', async () => {
    const emails = mails(10_000, { html: '<p>Dear reader,</p>\n'.repeat(150) });
    const batch = post(emails);
    const over = batch.then(() => true);
    let meanwhile = 0;
    while (!(await Promise.race([over, ours.sent().then(() => false)]))) meanwhile++;
    idOf(await batch, 10_000);
    assert.ok(meanwhile >= 10, `${meanwhile} answers meanwhile`);
  });
});
