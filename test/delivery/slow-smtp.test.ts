import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { Member } from '../../src/delivery/contract.ts';
import type { EmailDeps } from '../../src/delivery/email/contract.ts';
import { type GroupDelivery, makeGroupActivities } from '../../activities/index.ts';
import { makeProviderLine } from '../../src/delivery/line.ts';
import { newId } from '../../src/lib/ids.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { harness } from './harness.ts';

const { pool, orgId } = await organizationFixture(10);

/** Stored emails that share a group, at an SMTP server. */
async function group(count: number, url: string, fields: (i: number) => { subject: string }) {
  const set = harness(pool, orgId, []);
  const id = newId('grp');
  const members = await set.acceptMany(count, fields);
  const ids = members.map((member) => member.id);
  await pool.query('UPDATE emails SET workflow_id = $1 WHERE id = ANY ($2)', [id, ids]);
  const statuses = async (): Promise<Record<string, number>> => {
    const { rows } = await pool.query<{ status: string; count: number }>(
      'SELECT status, count(*)::int AS count FROM emails WHERE id = ANY ($1) GROUP BY status',
      [ids],
    );
    return Object.fromEntries(rows.map(({ status, count: n }) => [status, n]));
  };
  return {
    statuses,
    members,
    deliver: (settings: Partial<EmailDeps> = {}, some: readonly Member[] = members): Promise<GroupDelivery> => {
      const deps: EmailDeps = { ...set.deps, providers: [smtp(url)], ...settings };
      return new MockActivityEnvironment({ attempt: 1 }).run(() =>
        makeGroupActivities(deps).deliverGroup({ id, members: some }),
      );
    },
  };
}

const subjectOf = (message: string): string => /^Subject: (.*)$/im.exec(message)?.[1] ?? '';

test('sends an email at most twice to a server that never confirms it, then fails it', async (t) => {
  const server = await smtpScript(t, { message: 'silent' });
  const set = harness(pool, orgId, []);
  const deps = { ...set.deps, providers: [smtp(server.url, { transferMs: 30_000, replyMs: 300 })] };
  const { deliverOne, email } = harness(pool, orgId, [], deps);
  const member = await set.accept();
  for (let round = 0; round < 5 && (await email(member.id)).status === 'queued'; round++) await deliverOne(member);
  const { status, error } = await email(member.id);
  assert.equal(status, 'failed');
  assert.match(error ?? '', /may have been delivered/);
  assert.equal(server.messages.length, 2);
  assert.deepEqual(await set.outcomes(member.id), ['risked', 'unknown']);
});

test('a slow email does not delay the others of its group', async (t) => {
  const server = await smtpScript(t, {
    message: (message) => (subjectOf(message) === 'slow' ? 'silent' : '250 taken'),
  });
  const { deliver, statuses } = await group(80, server.url, (i) => ({ subject: i === 3 ? 'slow' : 'fast' }));
  let ended = false;
  const delivery = deliver({ line: makeProviderLine({ groupWaitMs: 600_000 }) }).finally(() => (ended = true));
  await eventually('all others are sent', async () => (await statuses())['sent'] === 79);
  assert.equal(ended, false);
  server.connections.forEach((socket) => socket.destroy());
  assert.deepEqual((await delivery).counts, { detached: 1, sent: 79 });
  assert.equal(server.messages.length, 80);
});

test('a worker that stops during a group claims no more and records all outcomes, and nothing is sent twice', async (t) => {
  const server = await smtpScript(t, { message: 'silent' });
  // Each reply takes a second.
  const answered = new WeakMap<object, number>();
  const timer = setInterval(() => {
    for (const socket of server.connections) {
      const since = answered.get(socket);
      if (since !== undefined && Date.now() - since > 1_000) {
        answered.delete(socket);
        socket.write('250 taken\r\n');
      }
    }
  }, 50);
  t.after(() => clearInterval(timer));
  server.onMessage = (socket) => answered.set(socket, Date.now());
  const { deliver, statuses, members } = await group(150, server.url, () => ({ subject: 'Hello' }));
  const stopping = new AbortController();
  const delivery = deliver({ stopping: stopping.signal });
  await eventually('some are taken', () => server.messages.length >= 30);
  stopping.abort();
  await assert.rejects(delivery, { type: 'NotAccepted' });
  const taken = server.messages.length;
  assert.ok(taken < 150, `${taken} were sent after all`);
  assert.deepEqual(await statuses(), { sent: taken, queued: 150 - taken });
  const { rows } = await pool.query<{ attempts: number }>(
    'SELECT count(*)::int AS attempts FROM attempts WHERE message_id = ANY ($1)',
    [members.map(({ id }) => id)],
  );
  assert.equal(rows[0]?.attempts, taken, 'emails that are left have no attempt');
  await deliver();
  assert.deepEqual(await statuses(), { sent: 150 });
  const ids = server.messages.map((message) => /^Message-ID: (.*)$/im.exec(message)?.[1]);
  assert.deepEqual([ids.length, new Set(ids).size], [150, 150]);
});
