import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { beforeEach, describe, test, type TestContext } from 'node:test';
import { MockActivityEnvironment } from '@temporalio/testing';
import { makeEmailActivities, makeGroupActivities } from '../../activities/index.ts';
import type { Member, MemberResult } from '../../src/delivery/contract.ts';
import { deliverEmails } from '../../src/delivery/email/deliver.ts';
import { makeProviderLine } from '../../src/delivery/line.ts';
import { newId } from '../../src/lib/ids.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { accept, newEmail, organization } from '../store/mail.ts';
import { eventually } from '../support/eventually.ts';
import { organizationFixture } from '../support/organization.ts';
import { harness, ScriptedProvider } from './harness.ts';

const { pool, orgId } = await organizationFixture(20);
const other = await organization(pool, 'other.example');

beforeEach(async () => {
  await pool.query('DELETE FROM provider_pauses');
});

/** A server that never answers messages with the subject `hang`, and a worker that sends to it, without waiting for minutes. */
async function hangingServer(t: TestContext, times: Parameters<typeof makeProviderLine>[0] = {}) {
  const server = await smtpScript(t, { message: (text) => (/^Subject: hang$/im.test(text) ? 'silent' : '250 taken') });
  const line = makeProviderLine({ stalledAfterMs: 500, ...times });
  const set = harness(pool, orgId, [], { line });
  // The times of the transfer must not end a test's calls.
  const deps = { ...set.deps, providers: [smtp(server.url)] };
  t.after(async () => {
    server.connections.forEach((socket) => socket.destroy());
    await line.end();
  });
  return { ...set, server, line, deps, deliver: (member: Member) => deliverEmails(deps, [member]) };
}

async function acceptHanging(count: number): Promise<Member[]> {
  const emails = Array.from({ length: count }, () => newEmail({ subject: 'hang' }));
  await accept(pool, orgId, emails);
  return emails.map(({ id }) => ({ id, version: 0 }));
}

async function acceptOther(count: number): Promise<Member[]> {
  const emails = Array.from({ length: count }, () =>
    newEmail({ from_domain: 'other.example', from: 'hello@other.example' }),
  );
  await accept(pool, other, emails);
  return emails.map(({ id }) => ({ id, version: 0 }));
}

async function rows(members: readonly Member[]) {
  const { rows: found } = await pool.query<{ status: string; attempts: number }>(
    `SELECT status, (SELECT count(*)::int FROM attempts WHERE message_id = email.id) AS attempts
     FROM emails AS email WHERE id = ANY ($1)`,
    [members.map(({ id }) => id)],
  );
  return found;
}

const isPostponed = (result: MemberResult | undefined): boolean =>
  result?.state === 'again' && result.postponed === true;

describe('an SMTP server that leaves the emails of one organization without a reply', () => {
  test('gets the email of another organization meanwhile', async (t) => {
    const { deliver, server } = await hangingServer(t);
    const hanging = (await acceptHanging(45)).map(deliver);
    await eventually('its share hangs', () => server.messages.length >= 13);
    const [result] = await deliver((await acceptOther(1))[0] as Member);
    assert.deepEqual(result?.state === 'ended' && result.status, 'sent');
    server.connections.forEach((socket) => socket.destroy());
    await Promise.all(hanging);
  });

  test('costs the emails that wait for a connection no attempt', async (t) => {
    const { deliver, server } = await hangingServer(t);
    const members = await acceptHanging(45);
    const results: MemberResult[] = [];
    const hanging = members.map(async (member) => results.push(...(await deliver(member))));
    await eventually('the others are postponed', () => results.length === 15);
    assert.ok(results.every(isPostponed));
    const waiting = members.filter(({ id }) => results.some((result) => result.id === id));
    // Further rounds are postponed before they are claimed.
    for (const member of waiting) assert.ok(isPostponed((await deliver(member))[0]));
    for (const { status, attempts } of await rows(waiting))
      assert.deepEqual({ status, attempts }, { status: 'queued', attempts: 0 });
    assert.equal(server.messages.length, 30);
    server.connections.forEach((socket) => socket.destroy());
    await Promise.all(hanging);
  });

  test('does not hold up a group with emails of both', async (t) => {
    const { deps, server, line } = await hangingServer(t);
    const group = newId('grp');
    const hanging = await acceptHanging(60);
    const others = await acceptOther(60);
    const members = [...hanging, ...others];
    await pool.query('UPDATE emails SET workflow_id = $1 WHERE id = ANY ($2)', [group, members.map(({ id }) => id)]);
    const delivery = new MockActivityEnvironment({ attempt: 1 }).run(() =>
      makeGroupActivities(deps).deliverGroup({ id: group, members }),
    );
    // It ends although no reply has arrived.
    await delivery.catch((error: unknown) => assert.match((error as Error).message, /emails were not accepted/));
    assert.ok((await rows(others)).every(({ status }) => status === 'sent'));
    assert.ok((await rows(hanging)).every(({ status, attempts }) => status === 'queued' && attempts <= 1));
    assert.ok(server.messages.length > 60);
    assert.ok((line.counts()[0]?.running ?? 0) > 0);
  });

  test('pauses that organization at this provider only, and the next provider sends its email', async (t) => {
    const { deps, deliver, server, lines } = await hangingServer(t, { hangingAfterMs: 300 });
    const hanging = (await acceptHanging(13)).map(deliver);
    const paused = async () => (await pool.query<{ sender: string }>('SELECT sender FROM provider_pauses')).rows;
    await eventually('it is paused', async () => (await paused()).length > 0);
    assert.deepEqual(await paused(), [{ sender: `hanging:${orgId}` }]);
    await eventually('the pause is known', async () => (await deps.pauses.current()).length > 0);
    assert.equal(lines.filter((line) => line.includes('"provider account paused"')).length, 1);

    const [member] = (await acceptHanging(1)) as [Member];
    assert.ok(isPostponed((await deliver(member))[0]));
    assert.deepEqual(await rows([member]), [{ status: 'queued', attempts: 0 }]);
    const [ofOther] = (await acceptOther(1)) as [Member];
    assert.equal((await deliver(ofOther))[0]?.state, 'ended');
    const next = new ScriptedProvider('postmark');
    await deliverEmails({ ...deps, providers: [...deps.providers, next] }, [member]);
    assert.deepEqual(next.tookIds, [member.id]);
    server.connections.forEach((socket) => socket.destroy());
    await Promise.all(hanging);
  });

  test('is probed by one email, and the first reply ends the pause', async (t) => {
    const { deps, deliver } = await hangingServer(t);
    const reason = 'It hangs.';
    await pool.query(
      `INSERT INTO provider_pauses (provider, sender, reason, next_probe_at) VALUES ('smtp', $1, $2, now() - interval '1 s')`,
      [`organization:${orgId}`, reason],
    );
    assert.equal((await deps.pauses.current()).length, 1);
    const emails = [newEmail({ subject: 'probe' }), newEmail({ subject: 'probe' })];
    await accept(pool, orgId, emails);
    const [first, second] = emails.map(({ id }) => ({ id, version: 0 })) as [Member, Member];
    assert.equal((await deliver(first))[0]?.state, 'ended');
    assert.equal((await pool.query('SELECT FROM provider_pauses')).rowCount, 0);
    assert.equal((await deliver(second))[0]?.state, 'ended');
  });
});

describe('an email whose reply is late', () => {
  test('frees its activity, is sent when the reply arrives, and is not sent again', async (t) => {
    const { deps, deliver, server, email, outcomes, line } = await hangingServer(t, { lateAfterMs: 300 });
    const sockets: { write: (text: string) => unknown }[] = [];
    server.onMessage = (socket) => sockets.push(socket);
    const [member] = (await acceptHanging(1)) as [Member];
    const [result] = await deliver(member);
    assert.ok(result?.state === 'again' && result.postponed && result.reason === 'The provider has not answered yet.');
    // Its worker may end, or its connection may break, long before the call has certainly ended.
    assert.equal(result.afterMs, 20_000);
    assert.deepEqual(await outcomes(member.id), [null]);
    await eventually('it has a late connection', () => line.counts()[0]?.late === 1);
    sockets[0]?.write('250 taken\r\n');
    await line.end();
    assert.deepEqual([(await email(member.id)).status, await outcomes(member.id)], ['sent', ['sent']]);
    const [later] = await deliverEmails(deps, [member]);
    assert.deepEqual(later, { id: member.id, state: 'ended', status: 'sent', provider: 'smtp' });
    assert.equal(server.messages.length, 1);
  });

  test('is not given up before its call is over', async (t) => {
    const { deps, deliver, email } = await hangingServer(t, { lateAfterMs: 300 });
    const [member] = (await acceptHanging(1)) as [Member];
    await deliver(member);
    const { giveUpEmail } = makeEmailActivities(deps);
    assert.equal(await giveUpEmail({ id: member.id, maximumAttempts: 1 }), 'queued');
    assert.equal((await email(member.id)).status, 'queued');
  });

  /** An email whose server replies after its delivery has stopped waiting; undefined ends the connection. */
  async function repliedLate(t: TestContext, reply: string | undefined) {
    const used = await hangingServer(t, { lateAfterMs: 300 });
    const sockets: Socket[] = [];
    used.server.onMessage = (socket) => sockets.push(socket);
    const [member] = (await acceptHanging(1)) as [Member];
    await used.deliver(member);
    if (reply === undefined) sockets[0]?.destroy();
    else sockets[0]?.write(`${reply}\r\n`);
    await used.line.end();
    return { ...used, member };
  }

  test('is attempted again as the retry policy states if the late reply is a refusal for now', async (t) => {
    const { deliver, server, email, outcomes, member } = await repliedLate(t, '451 4.7.1 later');
    assert.deepEqual([(await email(member.id)).status, await outcomes(member.id)], ['queued', ['again']]);
    const reason = 'The SMTP server answered: 451 4.7.1 later';
    assert.deepEqual(await deliver(member), [{ id: member.id, state: 'again', reason, failures: 1 }]);
    assert.equal(server.messages.length, 1);
    const [next] = await deliver(member);
    assert.ok(isPostponed(next), 'the second attempt is late too');
    assert.deepEqual([await outcomes(member.id), server.messages.length], [['again', null], 2]);
  });

  test('is attempted again as the retry policy states if the connection ends late', async (t) => {
    const { deliver, outcomes, member } = await repliedLate(t, undefined);
    const [result] = await deliver(member);
    assert.ok(result?.state === 'again' && result.failures === 1 && result.postponed === undefined);
    await deliver(member);
    assert.deepEqual(await outcomes(member.id), ['risked', null]);
  });

  test('waits for our account if the late reply refuses it', async (t) => {
    const { deliver, server, outcomes, member } = await repliedLate(t, '554 5.7.1 Your account is suspended');
    const [result] = await deliver(member);
    assert.ok(result?.state === 'again' && result.failures === 0);
    assert.equal(result.afterMs, 60_000);
    assert.deepEqual([await outcomes(member.id), server.messages.length], [['account'], 1]);
  });

  test('fails with the late refusal if that was its last attempt', async (t) => {
    const { deps, server, email, member } = await repliedLate(t, '451 4.7.1 later');
    const { attemptEmail } = makeEmailActivities(deps);
    const result = await attemptEmail({ ...member, maximumAttempts: 1 });
    assert.deepEqual([result.state, server.messages.length], ['ended', 1]);
    const { status, error } = await email(member.id);
    assert.deepEqual(
      [status, error],
      ['failed', 'The SMTP server answered: 451 4.7.1 later Given up after 1 attempt.'],
    );
  });

  test('ends when the late reply refuses it permanently', async (t) => {
    const { server, email, outcomes, member } = await repliedLate(t, '554 5.6.0 malformed');
    assert.deepEqual([(await email(member.id)).status, await outcomes(member.id)], ['bounced', ['refused']]);
    assert.equal(server.messages.length, 1);
  });
});
