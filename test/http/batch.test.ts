import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { lockTable, waitForBlocked } from '../support/locks.ts';
import { type Answer, assertRefused, bodyOf, inFuture, startService, useService } from './service.ts';
import { addresses } from './send-table.ts';
import { connectSocket, head } from './socket.ts';
import { TIMELINE_OF } from '../../src/store/emails/emails.ts';
import { findContent } from '../../src/store/emails/message-details.ts';

/** POST /v1/emails/batch: interface.md "Send Batch", decisions 5. */
const service = await useService();
const ours = await service.organization();
await ours.addDomain('second.example');
await ours.addDomain('pending.example', false);

type Fields = Record<string, unknown>;

function post(emails: unknown, key = ours.key): Promise<Answer> {
  return service.call('POST', '/v1/emails/batch', { key, json: { emails } });
}

function mails(n: number, fields: Fields = {}): Fields[] {
  return Array.from({ length: n }, () => ours.mail(fields));
}

function idOf(answer: Answer, total: number): string {
  const { id, ...rest } = bodyOf<{ id: string; created_at: string }>(answer, 202);
  assert.match(id, /^bt_[0-9a-z]{26}$/);
  assert.deepEqual(rest, { total, status: 'queued', created_at: rest.created_at });
  return id;
}

/** Rows of each table that accepting an email writes, and of the batch's own. */
async function stored(): Promise<number[]> {
  // In one row: Postgres may read the parts of a union in parallel and return them in any order.
  const tables = ['emails', 'email_bodies', 'email_events', 'outbox', 'batches', 'batch_moves'];
  const { rows } = await service.pool.query<{ counts: number[] }>(
    `SELECT ARRAY[${tables.map((table) => `(SELECT count(*)::int FROM ${table})`).join()}] AS counts`,
  );
  return rows[0]?.counts ?? [];
}

async function members(id: string): Promise<Fields[]> {
  const { rows } = await service.pool.query<Fields>(
    `SELECT email.*, (SELECT count(*)::int FROM outbox WHERE message_id = email.id AND action = 'start') AS start_count,
            (SELECT array_agg(type) FROM ${TIMELINE_OF('email')} AS event) AS events
     FROM emails AS email WHERE batch_id = $1 ORDER BY id`,
    [id],
  );
  return rows;
}

/** The batch is refused and stores nothing. */
async function refuses(
  emails: unknown,
  ...refusal: [status: number, code: string, param?: string, message?: string]
): Promise<void> {
  const [before, woken] = [await stored(), service.wakes()];
  assertRefused(await post(emails), ...refusal);
  assert.deepEqual(await stored(), before);
  assert.equal(service.wakes(), woken);
}

describe('a batch that waits for others of its organization', () => {
  it('is not stored if its caller disconnects', async (t) => {
    const before = (await stored()).at(-2) ?? 0;
    const unlock = await lockTable(t, service.pool, 'batches', 'EXCLUSIVE');
    const storing = Array.from({ length: 4 }, () => post(mails(1)));
    await waitForBlocked(service.pool, 4);
    const socket = await connectSocket(service.port);
    const body = JSON.stringify({ emails: mails(1) });
    const framing = ['content-type: application/json', `content-length: ${body.length}`];
    socket.write(`${head('/v1/emails/batch', ours.key, ...framing)}${body}`);
    await sleep(200);
    socket.destroy();
    await sleep(50);
    await unlock();
    for (const answer of await Promise.all(storing)) idOf(answer, 1);
    // The slots are granted in order, so the abandoned batch would be stored before this one.
    idOf(await post(mails(1)), 1);
    assert.equal((await stored()).at(-2), before + 5);
  });
});

describe('a batch', () => {
  it('is grouped by 500 members that follow each other and are due immediately', async () => {
    const emails = mails(2_100);
    emails[700] = ours.mail({ scheduled_at: inFuture({ hours: 1 }) });
    const id = idOf(await post(emails), emails.length);
    const rows = await members(id);
    const { rows: groups } = await service.pool.query<Fields>(
      `SELECT message_id, group_of FROM outbox WHERE action = 'group' ORDER BY message_id`,
    );
    const expected = [0, 1_000, 1_500].map((from) => rows.slice(from, from + 500).map((row) => row['id']));
    const group = (ids: unknown[]) => ({
      ...{ members: ids.map((each) => ({ id: each, version: 0 })), org_id: ours.id, batch_id: id },
      ...{ bulk: true, due_at: null, traceparents: [] },
    });
    assert.deepEqual(
      groups.map((row) => row['group_of']),
      expected.map(group),
    );
    for (const [index, row] of rows.entries()) {
      const workflow = groups[expected.findIndex((ids) => ids.includes(row['id']))]?.['message_id'];
      const own = index >= 500 && index < 1_000 ? 1 : index < 2_000 ? 0 : 1;
      assert.deepEqual([row['workflow_id'], row['start_count']], [workflow ?? row['id'], own], `member ${index}`);
    }
  });

  it('is not grouped if each member may have its own workflow', async (t) => {
    const own = await startService({ sharesWorkflows: false });
    t.after(() => own.close());
    const other = await own.organization();
    const json = { emails: Array.from({ length: 500 }, () => other.mail()) };
    idOf(await own.call('POST', '/v1/emails/batch', { key: other.key, json }), 500);
    const { rows } = await own.pool.query(
      `SELECT count(*)::int AS starts FROM outbox JOIN emails ON emails.id = outbox.message_id AND workflow_id = emails.id
       WHERE action = 'start'`,
    );
    assert.deepEqual(rows, [{ starts: 500 }]);
  });

  it('stores complete emails in order, each with its own time and domain', async () => {
    const [time, tags] = [inFuture({ hours: 2 }), [{ name: 'a', value: 'b' }]];
    const woken = service.wakes();
    const id = idOf(
      await post([
        ours.mail({ subject: 'first', cc: ['c@example.net'], tags, headers: { 'X-A': 'b' } }),
        ours.mail({ subject: 'second', scheduled_at: time, reply_to: [], marketing: true }),
        ours.mail({ subject: 'third', from: 'a@Second.Example', html: null, text: 'third' }),
      ]),
      3,
    );
    assert.equal(service.wakes(), woken + 1);
    const rows = await members(id);
    assert.deepEqual(
      rows.map(({ subject, status, events, start_count }) => [subject, status, events, start_count]),
      [
        ['first', 'queued', ['email.queued'], 1],
        ['second', 'scheduled', ['email.scheduled'], 1],
        ['third', 'queued', ['email.queued'], 1],
      ],
    );
    const [first, second, third] = rows;
    const shown = await ours.email(String(first?.['id']));
    assert.deepEqual(
      [shown['batch_id'], shown['cc'], shown['tags'], shown['headers']],
      [id, ['c@example.net'], tags, { 'X-A': 'b' }],
    );
    assert.deepEqual([second?.['scheduled_at'], second?.['marketing'], second?.['reply_to']], [time, true, null]);
    const content = await findContent(service.pool, service.deps.contents, ours.id, String(third?.['id']));
    assert.equal(content?.text, 'third');
  });

  it('has one email, or one more than a statement stores', async () => {
    for (const n of [1, 251]) {
      const id = idOf(await post(mails(n)), n);
      assert.equal((await members(id)).length, n);
    }
  });

  it('has up to 10,000 emails', async () => {
    const emails = mails(10_000).map((mail, i) => ({ ...mail, subject: `${i}` }));
    const id = idOf(await post(emails), 10_000);
    const all = await members(id);
    assert.deepEqual(
      all.map(({ subject }) => subject),
      emails.map(({ subject }) => subject),
    );
    assert.ok(all.every(({ start_count, status }) => start_count === 0 && status === 'queued'));
    assert.equal(new Set(all.map((each) => String(each['created_at']))).size, 1);
  });
});

describe('emails', () => {
  const small = { from: 'a@unknown.example', to: 'a@example.net', subject: 's', text: 't' };

  it('has at most 10,000 items, short or long', async () => {
    await refuses(Array(10_001).fill({}), 422, 'validation_error', 'emails', 'must have 1 to 10000 items');
    await refuses(Array(10_001).fill(small), 422, 'validation_error', 'emails', 'must have at most 10000 items');
  });

  for (const [name, json, param] of [
    ['is not empty', { emails: [] }, 'emails'],
    ['is an array', { emails: {} }, 'emails'],
    ['is the only field', { emails: [small], name: 'x' }, 'name'],
  ] as const) {
    it(`422: ${name}`, async () => {
      assertRefused(await ours.call('POST', '/v1/emails/batch', { json }), 422, 'validation_error', param);
    });
  }

  it('422 for 42 MB of {}', async () => {
    const raw = `{"emails":[${'{},'.repeat(14_000_000)}{}]}`;
    const answer = await ours.call('POST', '/v1/emails/batch', {
      raw,
      headers: { 'content-type': 'application/json' },
    });
    assertRefused(answer, 422, 'validation_error', 'emails');
  });
});

describe('all or nothing: emails.<index>.<field>: <problem>', () => {
  for (const [name, fields, param] of [
    ['an empty subject', { subject: '' }, 'subject'],
    ['a bad address of two', { to: ['a@example.org', 'x'] }, 'to.1'],
    ['a refused header', { headers: { From: 'x' } }, 'headers.From'],
    ['a malformed time', { scheduled_at: 'soon' }, 'scheduled_at'],
    ['a past time', { scheduled_at: inFuture({ hours: -1 }) }, 'scheduled_at'],
  ] as const) {
    it(`422 for ${name}, at the first, a middle and the last index`, async () => {
      for (const index of [0, 300, 600]) {
        const emails = mails(601);
        emails[index] = ours.mail(fields);
        await refuses(emails, 422, 'validation_error', `emails.${index}.${param}`);
      }
    });
  }

  for (const emails of [[null], 'x'] as const) {
    it(`422 for an unknown field named emails.1 beside ${JSON.stringify(emails)}`, async () => {
      const json = { emails, 'emails.1': 0 };
      assertRefused(await ours.call('POST', '/v1/emails/batch', { json }), 422, 'validation_error', 'emails.1');
    });
  }

  it('422 for an email that is not an object', async () => {
    await refuses([...mails(2), 'x'], 422, 'validation_error', 'emails.2', 'must be an object');
  });

  const past = ours.mail({ scheduled_at: inFuture({ hours: -1 }) });
  const far = ours.mail({ scheduled_at: inFuture({ days: 31 }) });
  const bad = ours.mail({ subject: '' });
  const unknown = ours.mail({ from: 'a@unknown.example' });
  // The database judges past and far times and domains, after the process has judged all fields.
  for (const [name, emails, param, message] of [
    ['two past times', [...mails(300), past, past], '300.scheduled_at', 'must be in the future'],
    ['a past time before a bad field', [...mails(300), past, bad], '300.scheduled_at', 'must be in the future'],
    ['a bad field before a past time', [bad, past], '0.subject', ''],
    ['a far time before a past time', [far, past, bad], '0.scheduled_at', 'must be at most 30 days ahead'],
    ['a bad field after an unknown domain', [unknown, bad], '1.subject', ''],
    ['a past time after an unknown domain', [unknown, ...mails(300), past], '301.scheduled_at', ''],
  ] as const) {
    it(`reports the first problem of several: ${name}`, async () => {
      await refuses(emails, 422, 'validation_error', `emails.${param}`, message);
    });
  }

  it('accepts emails of the largest size', async () => {
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
    ['unknown.example', 'domain_not_found'],
    ['pending.example', 'domain_not_verified'],
  ] as const) {
    it(`403 ${code} for ${domain}, at the first, a middle and the last index`, async () => {
      for (const index of [0, 300, 600]) {
        const emails = mails(601);
        emails[index] = ours.mail({ from: `a@${domain}` });
        emails[600] = ours.mail({ from: `a@${domain}` });
        await refuses(emails, 403, code, `emails.${index}.from`);
      }
    });
  }
});

it('answers single emails while a batch of 10,000 is read and stored', async () => {
  const batch = post(mails(10_000, { html: '<p>Dear reader,</p>\n'.repeat(150) }));
  const isDone = batch.then(() => true);
  let answered = 0;
  while (!(await Promise.race([isDone, ours.sent().then(() => false)]))) answered++;
  idOf(await batch, 10_000);
  assert.ok(answered >= 10, `${answered} answers`);
});
