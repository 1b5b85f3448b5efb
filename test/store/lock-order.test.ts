import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type pg from 'pg';
import { idTime } from '../../src/lib/ids.ts';
import { emailChannel } from '../../src/delivery/email/channel.ts';
import { applyAnswers } from '../../src/delivery/email/record.ts';
import { copyKey } from '../../src/domain/email/outgoing.ts';
import { lastAttempts } from '../../src/store/emails/attempts.ts';
import { aggregateTags } from '../../src/store/emails/tags.ts';
import { groupOutboxRows, lockEmailRows } from '../../src/store/outbox/outbox.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { expireEmails } from '../../src/upkeep/partitions.ts';
import pino from 'pino';
import { harnessWithProvider } from '../delivery/harness.ts';
import { organizationFixture } from '../support/organization.ts';
import { waitForBlocked } from '../support/locks.ts';
import { accept, acceptOne, force, newEmail } from './mail.ts';

const { pool, orgId } = await organizationFixture();

/** Runs `work`, and `meanwhile` on a connection that holds what `hold` has locked once the work waits for it. */
async function whileHeld(
  hold: (client: pg.PoolClient) => Promise<unknown>,
  work: () => Promise<unknown>,
  meanwhile: (client: pg.PoolClient) => Promise<unknown>,
): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await hold(client);
    const working = work();
    working.catch(() => undefined);
    await waitForBlocked(pool);
    await meanwhile(client);
    await client.query('COMMIT');
    await working;
  } finally {
    client.release(true);
  }
}

const lockEmail = (id: string) => (client: pg.PoolClient) =>
  client.query('SELECT FROM emails WHERE id = $1 FOR UPDATE', [id]);

/** Emails in the order of their ids. */
async function acceptSome(count: number): Promise<string[]> {
  const emails = Array.from({ length: count }, () => newEmail());
  await accept(pool, orgId, emails);
  return emails.map(({ id }) => id).sort();
}

describe('emails are locked in the order of their ids', () => {
  it('by the relay, also when they belong to several groups', async () => {
    const [first = '', second = '', third = ''] = await acceptSome(3);
    const rows = await lockEmailRows(pool, 10);
    const membersOf = (...ids: string[]) =>
      rows
        .filter(({ message_id }) => ids.includes(message_id))
        .map((row) => ({ outboxId: row.id, id: row.message_id, version: row.version }));
    const groups = [
      { id: 'grp_1', isLate: false, members: membersOf(first, third) },
      { id: 'grp_2', isLate: false, members: membersOf(second) },
    ];
    await whileHeld(lockEmail(second), () => groupOutboxRows(pool, groups), lockEmail(third));
    const { rows: grouped } = await pool.query<{ workflow_id: string }>('SELECT workflow_id FROM emails ORDER BY id');
    assert.deepEqual(
      grouped.map(({ workflow_id }) => workflow_id),
      ['grp_1', 'grp_2', 'grp_1'],
    );
  });

  it('by the record of an answer that has different outcomes for them', async () => {
    const [bounced = '', sent = ''] = await acceptSome(2);
    const none = { copies: [], sent: [], bounced: [], rejected: [] };
    const attempt = (message_id: string) => ({ message_id, n: 1 });
    const change = (id: string) => ({ id, provider: 'smtp', dedupe_key: id });
    const bounce = { ...change(bounced), recipient: 'a@example.net', bounce_reason: 'mailbox_full' } as const;
    const answers = [
      { attempt: attempt(bounced), changes: { ...none, bounced: [bounce] }, areStored: true, isCopied: false },
      { attempt: attempt(sent), changes: { ...none, sent: [change(sent)] }, areStored: false, isCopied: false },
    ];
    await whileHeld(lockEmail(bounced), () => applyAnswers(pool, answers), lockEmail(sent));
    const { rows } = await pool.query<{ status: string }>('SELECT status FROM emails WHERE id = ANY ($1) ORDER BY id', [
      [bounced, sent],
    ]);
    assert.deepEqual(rows, [{ status: 'bounced' }, { status: 'sent' }]);
  });

  it('by the look-up of a call that has an email in copies behind another one', async () => {
    const { deps, provider, accept: acceptFor, die } = harnessWithProvider(pool, orgId);
    const whole = await acceptFor();
    const copied = await acceptFor({ marketing: true, to: ['a@example.net', 'b@example.net'] });
    for (const member of [whole, copied]) await die(member, provider, 'call_1', false);
    const attempts = await lastAttempts(pool, [whole.id, copied.id]);
    const emails = [whole, copied].flatMap((member) => {
      const attempt = attempts.find(({ message_id }) => message_id === member.id);
      return attempt ? { member, attempt, hasCopiesLeft: false } : [];
    });
    const found = new Map([whole.id, copyKey(copied.id, 0), copyKey(copied.id, 1)].map((key) => [key, key]));
    await whileHeld(
      lockEmail(whole.id),
      () => transaction(pool, (client) => emailChannel(deps).recordFound(client, emails, found)),
      lockEmail(copied.id),
    );
    const { rows } = await pool.query<{ status: string }>('SELECT status FROM emails WHERE id = ANY ($1)', [
      [whole.id, copied.id],
    ]);
    assert.deepEqual(rows, [{ status: 'sent' }, { status: 'sent' }]);
  });
});

describe('counts of tags', () => {
  it('are reduced by an expiring partition while additions are aggregated', async () => {
    const values = ['a', 'b', 'c'];
    const email = (value: string, id?: string) =>
      newEmail({ tags: [{ name: 'kind', value }], ...(id !== undefined && { id }) });
    // The first partition, which has expired in 40 days, holds emails from before the database was created.
    const old = values.map((value) => email(value, `em_${idTime(Date.now() - 400 * 86_400_000)}${value.repeat(16)}`));
    await accept(pool, orgId, [...old, ...values.map((value) => email(value))]);
    for (const { id } of old) await force(pool, id, 'sent');
    while ((await aggregateTags(pool, 100)) > 0);
    const deps = { pool, emailRetentionDays: 31, log: pino({ level: 'silent' }) };
    const add = (value: string) => acceptOne(pool, orgId, { tags: [{ name: 'kind', value }] }).then(() => undefined);
    await add('b');
    await whileHeld(
      (client) => aggregateTags(client, 1),
      () => expireEmails(deps, Date.now() + 40 * 86_400_000),
      async (client) => {
        await add('a');
        await add('c');
        await aggregateTags(client, 2);
      },
    );
    const { rows } = await pool.query<{ value: string; emails: string }>(
      'SELECT value, emails FROM tag_counts WHERE org_id = $1 ORDER BY value',
      [orgId],
    );
    assert.deepEqual(
      rows.map(({ value, emails }) => [value, Number(emails)]),
      values.map((value) => [value, 2]),
    );
  });
});
