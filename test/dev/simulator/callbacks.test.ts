import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { classifyBounce } from '../../../src/domain/bounces/bounces.ts';
import { BOUNCE_REASONS } from '../../../src/domain/email/email.ts';
import type { Feedback } from '../../../src/domain/email/feedback.ts';
import { parsePostmarkCallback } from '../../../src/providers/postmark/callbacks.ts';
import { bounceOf } from '../../../dev/simulator/bounces.ts';
import { at, TOKEN } from '../../providers/simulator.ts';
import { receiver, awaitCallbacks } from './receiver.ts';
import { mail, start } from './start.ts';

/** Where callbacks go, and what has come there. */
async function callbacks(t: TestContext, ...statuses: number[]) {
  const { hits, url } = await receiver(t, ...statuses);
  return {
    hits,
    target: { url: `${url}/callbacks/postmark?a=1`, user: 'postmark', password: 'pass:wörd' },
    records: () => hits.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>),
  };
}

test('posts a delivery for each recipient whose server accepts', async (t) => {
  const { hits, target, records } = await callbacks(t);
  const { postmark, mailer } = await start(t, { deliveryCallback: target });
  const { MessageID, SubmittedAt } = await postmark.sendEmail(
    mail({
      To: 'Plain <Plain@example.net>, delivered@example.net, plain@EXAMPLE.net',
      Cc: 'bounced+mailbox_full@example.net',
      Bcc: 'slow@example.net',
      Tag: 'welcome',
      Metadata: { email: 'em_1', call: 'call_1' },
    }),
  );
  await mailer.sendMail({ from: 'a@example.com', to: 'smtp@example.net', text: 'x' });
  await awaitCallbacks(hits, 4);
  for (const { url, headers } of hits) {
    assert.equal(url, '/callbacks/postmark?a=1');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers.authorization, `Basic ${Buffer.from('postmark:pass:wörd').toString('base64')}`);
  }
  const deliveries = records().filter((record) => record['RecordType'] === 'Delivery');
  assert.deepEqual(deliveries.map(({ Recipient }) => Recipient).sort(), [
    'delivered@example.net',
    'plain@EXAMPLE.net',
    'slow@example.net',
  ]);
  for (const record of deliveries) {
    const { Recipient, DeliveredAt } = record;
    assert.deepEqual(record, {
      RecordType: 'Delivery',
      ServerID: 1,
      MessageStream: 'outbound',
      MessageID,
      Recipient,
      DeliveredAt,
      Tag: 'welcome',
      Details: 'smtp;250 2.0.0 Ok: queued',
      Metadata: { email: 'em_1', call: 'call_1' },
    });
    assert.match(String(DeliveredAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    assert.equal(Date.parse(String(DeliveredAt)) - Date.parse(SubmittedAt), 20);
  }
});

/** What is posted about a message to one address, in the order it comes: so many callbacks, unless there are more. */
async function postedAbout(t: TestContext, address: string, count: number) {
  const { hits, target, records } = await callbacks(t);
  const { postmark } = await start(t, { deliveryCallback: target });
  await postmark.sendEmail(mail({ To: address, Metadata: { email: 'em_1' } }));
  await awaitCallbacks(hits, count);
  return records();
}

for (const [address, expected] of Object.entries({
  'opened@example.net': ['Delivery', 'Open'],
  'clicked@example.net': ['Delivery', 'Open', 'Click'],
  'complained@example.net': ['Delivery', 'SpamComplaint'],
  'delayed@example.net': ['Bounce', 'Delivery'],
  'bounced@example.net': ['Bounce'],
  'slow@example.net': ['Delivery'],
})) {
  test(`${address} is reported as ${expected.join(', ') || 'nothing'}`, async (t) => {
    const records = await postedAbout(t, address, expected.length);
    assert.deepEqual(records.map((record) => String(record['RecordType'])).sort(), expected.toSorted());
    for (const record of records) {
      assert.deepEqual(record['Metadata'], { email: 'em_1' });
      assert.equal(record['Recipient'] ?? record['Email'], address);
    }
  });
}

test('reports the delivery to fail-once@ after the call that is accepted', async (t) => {
  const { hits, target, records } = await callbacks(t);
  const { postmark } = await start(t, { deliveryCallback: target });
  const message = mail({ To: 'fail-once@example.net', Metadata: { email: 'em_1' } });
  await assert.rejects(postmark.sendEmail(message));
  await postmark.sendEmail(message);
  await awaitCallbacks(hits, 1);
  assert.deepEqual(
    records().map(({ RecordType, Recipient }) => [RecordType, Recipient]),
    [['Delivery', 'fail-once@example.net']],
  );
});

test('sends records and SMTP replies that are classified as the requested bounce reason', async (t) => {
  for (const reason of BOUNCE_REASONS.filter((each) => each !== 'provider_suppressed')) {
    const [record] = await postedAbout(t, `bounced+${reason}@example.net`, 1);
    const callback = parsePostmarkCallback(record, () => false, 'broadcast');
    assert.ok(callback.kind === 'feedback', reason);
    assert.equal(callback.feedback.bounceReason, reason);
    assert.equal(classifyBounce(bounceOf(reason)?.reply ?? '').reason, reason);
  }
  assert.equal(classifyBounce(bounceOf('provider_suppressed')?.reply ?? '').reason, 'provider_suppressed');
});

test('returns the same reports in message details and callbacks', async (t) => {
  const { hits, target, records } = await callbacks(t);
  const { postmark, postmarkUrl } = await start(t, { deliveryCallback: target });
  const locals = ['opened', 'clicked', 'complained', 'delayed', 'bounced+mailbox_full', 'bounced+unknown', 'plain'];
  const sent = await postmark.sendEmail(
    mail({
      To: locals.map((local) => `${local}@example.net`).join(', '),
      HtmlBody: '<a href="https://a.example/">',
      Metadata: { email: 'em_1' },
    }),
  );
  await awaitCallbacks(hits, 12);
  const posted = records().map((record) => parsePostmarkCallback(record, () => false, 'broadcast'));
  const { reports } = at(postmarkUrl, 5, TOKEN);
  const reported = (await reports?.('em_1', sent.MessageID)) ?? [];
  const byKey = (a: Feedback, b: Feedback) => a.dedupeKey.localeCompare(b.dedupeKey);
  assert.equal(reported.length, 12);
  assert.deepEqual(
    reported.toSorted(byKey),
    posted
      .map((callback) => {
        const { evidence, ...report } = (callback as { feedback: Feedback }).feedback;
        assert.equal(evidence?.isSigned, false);
        return report;
      })
      .toSorted(byKey),
  );
});

for (const [statuses, count] of [
  [[500, 500, 204], 3],
  [[0, 0, 204], 3],
  [[500], 3],
  [[401], 1],
] as const) {
  test(`posts a callback ${count} times where the answers are ${statuses.join()} (0: none)`, async (t) => {
    const { hits, target, records } = await callbacks(t, ...statuses);
    const { postmark } = await start(t, { deliveryCallback: target });
    await postmark.sendEmail(mail());
    await awaitCallbacks(hits, count);
    assert.deepEqual(
      hits.map(({ headers }) => headers['x-pm-retries-remaining']),
      ['2', '1', '0'].slice(0, count),
    );
    assert.equal(new Set(hits.map(({ headers }) => headers['x-pm-webhook-trace-id'])).size, 1);
    assert.equal(new Set(records().map((record) => JSON.stringify(record))).size, 1);
  });
}
