import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { projectMessages } from '../../src/projection/messages.ts';
import { project, projectReschedule } from '../../src/projection/emails.ts';
import { projectFeedback } from '../../src/projection/feedback.ts';
import { eventsRecorded } from '../../src/telemetry/topics.ts';
import { acceptText, connect } from '../store/chats.ts';
import { acceptOne, force, inMs, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();
const orgId = await organization(pool);

/** Collects published events. */
function collect(t: TestContext): unknown[] {
  const news: unknown[] = [];
  t.after(
    eventsRecorded.listen(({ kind, event, count, reasons = [] }) => {
      news.push([kind, event, count, ...(event === 'bounced' ? [Object.fromEntries(reasons)] : [])]);
    }),
  );
  return news;
}

test('publishes each event of a timeline once', async (t) => {
  const news = collect(t);
  const [one, two] = [await acceptOne(pool, orgId), await acceptOne(pool, orgId)];
  const sent = [one, two].map((id) => ({ id, dedupe_key: 'sent' }));
  await project(pool, 'sent', sent);
  await project(pool, 'sent', sent);
  const bounce = (emailId: string, recipient: string, bounceReason: 'unknown' | 'mailbox_full') =>
    ({ emailId, change: 'bounced', recipient, dedupeKey: `b ${recipient}`, error: 'no', bounceReason }) as const;
  const bounces = [bounce(one, 'a@a.example', 'unknown'), bounce(two, 'b@b.example', 'mailbox_full')];
  await projectFeedback(pool, [...bounces, bounce(one, 'c@c.example', 'unknown')]);
  await projectFeedback(pool, bounces);
  assert.deepEqual(news, [
    ['email', 'sent', 2],
    ['email', 'bounced', 3, { unknown: 2, mailbox_full: 1 }],
  ]);
});

test('publishes no claim and no change without effect', async (t) => {
  const news = collect(t);
  const id = await acceptOne(pool, orgId);
  await force(pool, id, 'scheduled');
  await projectReschedule(pool, orgId, id, inMs(-60_000));
  await projectReschedule(pool, orgId, id, inMs(60_000));
  await project(pool, 'claimed', [{ id }]);
  await project(pool, 'canceled', [{ id }]);
  assert.deepEqual(news, [['email', 'rescheduled', 1]]);
});

test('publishes each event of a chat-app message once', async (t) => {
  const news = collect(t);
  const { number } = await connect(pool, orgId);
  const id = await acceptText(pool, orgId, number);
  for (const change of ['sent', 'sent', 'failureReported', 'failed'] as const) {
    await projectMessages(pool, change, [{ id, dedupe_key: change, ...(change !== 'sent' && { error: 'no' }) }]);
  }
  assert.deepEqual(news, [
    ['chatapp', 'sent', 1],
    ['chatapp', 'failed', 1],
  ]);
});
