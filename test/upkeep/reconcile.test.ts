import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { makeReconcileUpkeep, type ReconcileDeps } from '../../src/upkeep/reconcile.ts';
import type { Feedback } from '../../src/domain/email/feedback.ts';
import { project } from '../../src/projection/emails.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { parsePostmarkCallback } from '../../src/providers/postmark/callbacks.ts';
import { outgoing } from '../providers/outgoing.ts';
import { at, CALL, simulator } from '../providers/simulator.ts';
import { acceptOne, emailRow, force, nextLook, organization, timeline } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(5);
let orgId: string;
beforeEach(async () => {
  await pool.query('TRUNCATE emails, outbox, domains, organizations CASCADE');
  orgId = await organization(pool);
});

function make(deps: Partial<ReconcileDeps> = {}) {
  const asked: string[] = [];
  const activities = makeReconcileUpkeep({
    pool,
    askPostmark: (emailId, messageId) => {
      asked.push(`${emailId} ${messageId}`);
      return Promise.resolve([]);
    },
    requestIntervalMs: 0,
    log: pino({ level: 'silent' }),
    ...deps,
  });
  return {
    reconcileSent: () => activities.reconcileSent(),
    asked,
  };
}

describe('emails without a report', () => {
  /** An email that was sent so many minutes ago. @returns its id */
  async function taken(minutes: number, fields: { status?: 'delivery_delayed' | 'delivered'; provider?: string } = {}) {
    const id = await acceptOne(pool, orgId);
    const { status, provider = 'postmark' } = fields;
    await project(pool, 'sent', [{ id, provider, provider_message_id: `message of ${id}` }]);
    if (status) await force(pool, id, status);
    await makeOlder(id, minutes);
    return id;
  }

  async function makeOlder(id: string, minutes: number): Promise<void> {
    await pool.query(
      `UPDATE emails SET last_event_at = last_event_at - make_interval(mins => $2),
         look_at = look_at - make_interval(mins => $2) WHERE id = $1`,
      [id, minutes],
    );
  }

  test('are looked up from 15 minutes to three days after they were sent by Postmark', async () => {
    const { reconcileSent, asked } = make();
    const stuck = [await taken(16), await taken(71 * 60), await taken(16, { status: 'delivery_delayed' })];
    await taken(14);
    await taken(73 * 60);
    await taken(60, { status: 'delivered' });
    await taken(60, { provider: 'smtp' });
    await acceptOne(pool, orgId);
    assert.deepEqual(await reconcileSent(), { done: 3, next: null });
    assert.deepEqual(asked.toSorted(), stuck.map((id) => `${id} message of ${id}`).toSorted());
    assert.deepEqual(await reconcileSent(), { done: 0, next: null });
  });

  test('are left for the next step after two minutes', async (t) => {
    await Promise.all([taken(16), taken(16), taken(16)]);
    let now = performance.now();
    t.mock.method(performance, 'now', () => now);
    const askPostmark = () => {
      now += 70_000;
      return Promise.resolve([]);
    };
    const { reconcileSent } = make({ askPostmark });
    assert.equal((await reconcileSent()).done, 2);
    assert.equal((await reconcileSent()).done, 1);
  });

  test('are looked up less and less often, and finally not at all', async () => {
    const { reconcileSent, asked } = make();
    const id = await taken(16);
    const waits: (number | null)[] = [];
    for (;;) {
      assert.equal((await reconcileSent()).done, 1);
      const wait = await nextLook(pool, id);
      waits.push(wait);
      if (wait === Infinity || wait === null) break;
      await makeOlder(id, wait - 1);
      assert.equal((await reconcileSent()).done, 0);
      await makeOlder(id, 2);
    }
    assert.deepEqual(waits.slice(0, 3), [16, 33, 67]);
    assert.equal(waits.at(-1), Infinity);
    const waited = waits.slice(0, -1).reduce<number>((sum, wait) => sum + Number(wait), 0);
    assert.ok(waited > 48 * 60, `for ${waited} minutes`);
    assert.ok(asked.length >= 8 && asked.length <= 10, `${asked.length} questions`);
    await makeOlder(id, 100_000);
    assert.equal((await reconcileSent()).done, 0);
  });

  test('get the reports of Postmark, and late callbacks add nothing', async (t) => {
    const { postmarkUrl } = await simulator(t);
    const provider = at(postmarkUrl);
    const locals = ['clicked', 'bounced+mailbox_not_found', 'complained', 'delayed', 'slow', 'opened'];
    const ids: string[] = [];
    for (const local of locals) {
      const id = await acceptOne(pool, orgId, { to: [`${local}@example.net`] });
      const [outcome] = await provider.send([{ ...outgoing({ to: [`${local}@example.net`] }), id }], CALL);
      assert.ok(outcome?.kind === 'sent');
      await project(pool, 'sent', [{ id, provider: 'postmark', provider_message_id: outcome.messageId }]);
      await makeOlder(id, 16);
      ids.push(id);
    }
    await sleep(100);
    const { reconcileSent } = make({ askPostmark: provider.reports });
    assert.equal((await reconcileSent()).done, 6);
    const expected = [
      ['clicked', 'queued', 'sent', 'delivered', 'opened', 'clicked'],
      ['bounced', 'queued', 'sent', 'bounced'],
      ['complained', 'queued', 'sent', 'delivered', 'complained'],
      ['delivered', 'queued', 'sent', 'delivery_delayed', 'delivered'],
      ['delivered', 'queued', 'sent', 'delivered'],
      ['opened', 'queued', 'sent', 'delivered', 'opened'],
    ];
    const results = async () =>
      Promise.all(ids.map(async (id) => [(await emailRow(pool, id)).status, ...(await timeline(pool, id))]));
    assert.deepEqual(await results(), expected);
    const { rows } = await pool.query('SELECT email, origin, reason FROM suppressions ORDER BY email');
    assert.deepEqual(rows, [
      { email: 'bounced+mailbox_not_found@example.net', origin: 'bounce', reason: 'mailbox_not_found' },
      { email: 'complained@example.net', origin: 'complaint', reason: null },
    ]);

    for (const [i, id] of ids.entries()) {
      const again: Feedback[] = (await provider.reports?.(id, await messageId(id))) ?? [];
      await projectFeedback(pool, again);
      assert.deepEqual((await results())[i], expected[i]);
    }
    const callback = parsePostmarkCallback(
      {
        RecordType: 'Delivery',
        MessageID: await messageId(ids[0] as string),
        Recipient: 'clicked@example.net',
        DeliveredAt: await deliveredAt(postmarkUrl, await messageId(ids[0] as string)),
        Metadata: { email: ids[0] },
      },
      () => false,
      'broadcast',
    );
    assert.ok(callback.kind === 'feedback');
    await projectFeedback(pool, [callback.feedback]);
    assert.deepEqual((await results())[0], expected[0]);
  });

  async function messageId(id: string): Promise<string> {
    return (await emailRow(pool, id)).provider_message_id ?? '';
  }

  async function deliveredAt(url: string, id: string): Promise<string | undefined> {
    const answer = await fetch(`${url}/messages/outbound/${id}/details`, {
      headers: { 'x-postmark-server-token': 'server-token' },
    });
    const { MessageEvents } = (await answer.json()) as { MessageEvents: { Type: string; ReceivedAt: string }[] };
    return MessageEvents.find(({ Type }) => Type === 'Delivered')?.ReceivedAt;
  }

  test('are looked up for each copy', async () => {
    const { reconcileSent, asked } = make();
    const id = await taken(16);
    await pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status, provider_message_id)
       VALUES ($1, 'a@example.net', 'sent', 'copy 1'), ($1, 'b@example.net', 'sent', 'copy 2'),
              ($1, 'c@example.net', 'suppressed', NULL)`,
      [id],
    );
    await reconcileSent();
    assert.deepEqual(asked.toSorted(), [`${id} copy 1`, `${id} copy 2`, `${id} message of ${id}`]);
  });

  test('a failed lookup is an error and does not block the next step', async () => {
    const first = await taken(30);
    const second = await taken(20);
    const asked: string[] = [];
    const { reconcileSent } = make({
      askPostmark: (id) => {
        asked.push(id);
        return id === first ? Promise.reject(new Error('busy')) : Promise.resolve([]);
      },
    });
    await assert.rejects(reconcileSent(), /busy/);
    assert.equal((await reconcileSent()).done, 1);
    assert.deepEqual(asked, [first, second]);
    assert.deepEqual([await nextLook(pool, first), await nextLook(pool, second)], [30, 20]);
  });

  test('are looked up in steps of 100, one at a time', async () => {
    for (let i = 0; i < 120; i++) await taken(16);
    let open = 0;
    let most = 0;
    const { reconcileSent } = make({
      askPostmark: async () => {
        most = Math.max(most, ++open);
        await sleep(1);
        open--;
        return [];
      },
    });
    assert.deepEqual(await reconcileSent(), { done: 100, next: '' });
    assert.deepEqual(await reconcileSent(), { done: 20, next: null });
    assert.equal(most, 1);
  });

  test('are not changed without Postmark', async () => {
    const id = await taken(16);
    assert.deepEqual(await make({ askPostmark: undefined }).reconcileSent(), { done: 0, next: null });
    assert.equal(await nextLook(pool, id), null);
  });
});
