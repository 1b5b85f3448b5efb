import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { insertDomain } from '../../src/store/domains/domains.ts';
import { acceptEmails, type NewEmail, type Refusal } from '../../src/store/emails/accept.ts';
import { findEmail } from '../../src/store/emails/emails.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { lockEmails } from '../../src/store/emails/attempts.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { organizationFixture } from '../support/organization.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { accept, acceptOne, DOMAIN, inInterval, inMs, newEmail, organization } from './mail.ts';

const contents = makeEmailContents(SECRET_KEY);

const { pool, orgId } = await organizationFixture();
await insertDomain(pool, 'dm_pending', orgId, 'pending.example', false);
await organization(pool, 'others.example');

describe('accepting emails', () => {
  async function stored(ids: readonly string[]): Promise<Record<string, number>> {
    const { rows } = await pool.query<Record<string, number>>(
      `SELECT (SELECT count(*)::int FROM emails WHERE id = ANY ($1)) AS emails,
              (SELECT count(*)::int FROM email_bodies WHERE email_id = ANY ($1)) AS bodies,
              (SELECT count(*)::int FROM outbox WHERE message_id = ANY ($1)) AS outbox`,
      [ids],
    );
    return rows[0] as Record<string, number>;
  }

  test('an email without a time is queued, one with a time is scheduled', async () => {
    const time = inMs(60_000);
    const emails = [newEmail(), newEmail({ scheduled_at: time })];
    const [now, later] = await accept(pool, orgId, emails);
    assert.deepEqual([now?.status, now?.scheduled_at, now?.refusal], ['queued', null, null]);
    assert.deepEqual([later?.status, later?.scheduled_at, later?.refusal], ['scheduled', time, null]);
    for (const [i, type] of ['email.queued', 'email.scheduled'].entries()) {
      const { id } = emails[i] as NewEmail;
      const email = await findEmail(pool, contents, orgId, id);
      assert.deepEqual(email?.events, [{ type, created_at: email?.created_at }]);
      assert.equal(email.last_event_at, email.created_at);
      assert.equal(email.created_at, now?.created_at);
      const { rows } = await pool.query(`SELECT action, tries, retry_at FROM outbox WHERE message_id = $1`, [id]);
      assert.deepEqual(rows, [{ action: 'start', tries: 0, retry_at: null }]);
      const { rows: states } = await pool.query(
        `SELECT workflow_id, schedule_version, provider FROM emails WHERE id = $1`,
        [id],
      );
      assert.deepEqual(states, [{ workflow_id: id, schedule_version: 0, provider: null }]);
    }
  });

  const refusals: [Refusal, Partial<NewEmail>, string[] | null][] = [
    ['past', { scheduled_at: inMs(-60_000) }, null],
    ['far', { scheduled_at: inMs(721 * 3_600_000) }, null],
    ['domain_not_found', { from_domain: 'nobody.example' }, null],
    ['domain_not_found', { from_domain: 'others.example' }, null],
    ['domain_not_found', { from_domain: `sub.${DOMAIN}` }, null],
    ['domain_not_verified', { from_domain: 'pending.example' }, null],
    ['insufficient_scope', {}, ['dm_pending']],
    ['insufficient_scope', {}, []],
    // Fields come before domains, and a foreign domain gives the same error as an unknown one.
    ['past', { scheduled_at: inMs(-60_000), from_domain: 'nobody.example' }, null],
    ['domain_not_found', { from_domain: 'nobody.example' }, []],
    ['insufficient_scope', { from_domain: 'pending.example' }, []],
  ];
  for (const [refusal, fields, domainIds] of refusals)
    test(`refuses one email of several with ${refusal} (${JSON.stringify(fields)}, ${JSON.stringify(domainIds)})`, async () => {
      const others = domainIds ? { from_domain: 'pending.example' } : {};
      const emails = [newEmail(others), newEmail(fields), newEmail(others)];
      const answers = await acceptEmails(pool, orgId, domainIds, emails);
      assert.equal(answers[1]?.refusal, refusal);
      assert.deepEqual(
        answers.map(({ id }) => id),
        emails.map(({ id }) => id),
      );
      const ids = emails.map(({ id }) => id);
      const n = answers.filter((answer) => answer.refusal === null).length;
      assert.equal(n, domainIds ? 0 : 2);
      assert.deepEqual(await stored(ids), { emails: n, bodies: n, outbox: n });
    });

  for (const timezone of ['UTC', 'Europe/Berlin'])
    test(`accepts times later than now and at most 30 × 24 hours ahead, to the millisecond (in ${timezone})`, async () => {
      await transaction(pool, async (client) => {
        await client.query(`SET LOCAL timezone = '${timezone}'`);
        for (const [interval, refusal] of [
          ['-1 millisecond', 'past'],
          ['0', 'past'],
          ['1 millisecond', null],
          ['720 hours', null],
          ['720 hours 1 millisecond', 'far'],
        ] as const) {
          const email = newEmail({ scheduled_at: await inInterval(client, interval) });
          assert.equal((await acceptEmails(client, orgId, null, [email]))[0]?.refusal, refusal, interval);
        }
      });
    });

  test('answers are in the order of the emails under every join method', async () => {
    const domains = Array.from({ length: 20 }, (_, i) => `d${i}.example`);
    for (const name of domains) await insertDomain(pool, newId('dm'), orgId, name, true);
    for (const off of [[], ['nestloop'], ['hashjoin', 'nestloop']])
      await transaction(pool, async (client) => {
        for (const join of off) await client.query(`SET LOCAL enable_${join} = off`);
        await client.query(`SET LOCAL plan_cache_mode = force_custom_plan`);
        const emails = Array.from({ length: 1_000 }, (_, i) =>
          newEmail({ from_domain: domains[(i * 7) % 20] as string, subject: `${i}` }),
        );
        const answers = await accept(client, orgId, emails);
        assert.deepEqual(
          answers.map(({ id }) => id),
          emails.map(({ id }) => id),
        );
      });
  });

  test('stores every field unchanged', async () => {
    const email = newEmail({
      batch_id: 'bt_1',
      from: '"Ä, B" <hello@acme.example>',
      to: ['Jörg <j@example.net>', 'a@b.example'],
      cc: ['c@example.net'],
      bcc: ['d@example.net'],
      reply_to: ['e@example.net'],
      subject: 'Grüße 👩‍👩‍👧 \\ " \' {}',
      html: '<p>\\u0000 \r\n\t</p>',
      text: '$1 \u2028 ü',
      marketing: true,
      tags: [{ name: 'ä', value: '"' }],
      headers: { 'X-Z': '1', 'X-A': 'ü', 'x-m': '{"a":1}', ['__proto__']: 'x' },
      scheduled_at: inMs(3_600_000),
    });
    await accept(pool, orgId, [email]);
    const found = await findEmail(pool, contents, orgId, email.id);
    const { rows } = await pool.query<{ html: string; text: string }>(
      `SELECT html, text FROM email_bodies WHERE email_id = $1`,
      [email.id],
    );
    const FIELDS = ['from', 'to', 'cc', 'bcc', 'reply_to', 'subject', 'marketing'] as const;
    for (const name of [...FIELDS, 'batch_id', 'tags', 'scheduled_at'] as const)
      assert.deepEqual(found?.[name], email[name], name);
    assert.deepEqual(rows, [{ html: email.html, text: email.text }]);
    assert.deepEqual(Object.entries(found?.headers ?? {}), Object.entries(email.headers));
    const [locked] = await lockEmails(pool, [email.id]);
    for (const name of [...FIELDS, 'html', 'text'] as const) assert.deepEqual(locked?.[name], email[name], name);
    assert.deepEqual(Object.entries(locked?.headers ?? {}), Object.entries(email.headers));
  });

  test('a duplicate id stores nothing of the request', async () => {
    const id = await acceptOne(pool, orgId, { subject: 'first' });
    const other = newEmail();
    await assert.rejects(acceptEmails(pool, orgId, null, [other, newEmail({ id, subject: 'second' })]), {
      code: '23505',
    });
    assert.equal((await findEmail(pool, contents, orgId, id))?.subject, 'first');
    assert.deepEqual(await stored([other.id]), { emails: 0, bodies: 0, outbox: 0 });
  });
});
