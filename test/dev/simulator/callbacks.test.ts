import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { classifyBounce } from '../../../src/domain/bounces/bounces.ts';
import { BOUNCE_REASONS } from '../../../src/domain/email/email.ts';
import type { Feedback } from '../../../src/domain/email/feedback.ts';
import { parsePostmarkCallback } from '../../../src/providers/postmark/callbacks.ts';
import { bounceOf } from '../../../dev/simulator/bounces.ts';
import { at } from '../../providers/simulator.ts';
import { mail, start, TOKEN, until } from './start.ts';

interface Hit {
  readonly url: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Record<string, unknown>;
}

/** Answers each callback with the next of these statuses, the last one for ever; 0 breaks the connection. */
async function receiver(t: TestContext, ...statuses: number[]) {
  const hits: Hit[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { url = '', headers } = request;
      hits.push({ url, headers, body: JSON.parse(body) as Hit['body'] });
      const status = statuses[Math.min(hits.length, statuses.length) - 1] ?? 200;
      setTimeout(() => {
        if (status === 0) request.socket.destroy();
        else response.writeHead(status).end('ok');
      }, 5);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks/postmark?a=1`;
  return { hits, target: { url, user: 'postmark', password: 'pass:wörd' } };
}

/** Waits until so many callbacks have come, and then a moment for one too many. */
async function settled(hits: readonly unknown[], count: number): Promise<void> {
  await until(() => (hits.length >= count ? hits : undefined));
  await sleep(200);
}

test('posts a delivery for each recipient whose server accepts', async (t) => {
  const { hits, target } = await receiver(t);
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
  await settled(hits, 3);

  const deliveries = hits.filter(({ body }) => body['RecordType'] === 'Delivery');
  const to = deliveries.map(({ body }) => body['Recipient']).sort();
  assert.deepEqual(to, ['delivered@example.net', 'plain@EXAMPLE.net']);
  for (const { url, headers, body } of deliveries) {
    assert.equal(url, '/callbacks/postmark?a=1');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(headers['authorization'], `Basic ${Buffer.from('postmark:pass:wörd').toString('base64')}`);
    assert.deepEqual(
      { ...body, Recipient: '', DeliveredAt: '' },
      {
        RecordType: 'Delivery',
        ServerID: 1,
        MessageStream: 'outbound',
        MessageID,
        Recipient: '',
        Tag: 'welcome',
        DeliveredAt: '',
        Details: 'smtp;250 2.0.0 Ok: queued',
        Metadata: { email: 'em_1', call: 'call_1' },
      },
    );
    assert.match(String(body['DeliveredAt']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
    assert.equal(Date.parse(String(body['DeliveredAt'])) - Date.parse(SubmittedAt), 20);
  }
});

/** What is posted about a message to one address, in the order it comes: so many callbacks, unless there are more. */
async function postedAbout(t: TestContext, address: string, count: number, fields: object = {}) {
  const { hits, target } = await receiver(t);
  const { postmark } = await start(t, { deliveryCallback: target });
  await postmark.sendEmail(mail({ To: address, Metadata: { email: 'em_1' }, ...fields }));
  await settled(hits, count);
  return hits.map(({ body }) => body);
}

for (const [address, expected] of Object.entries({
  'opened@example.net': ['Delivery', 'Open'],
  'clicked@example.net': ['Delivery', 'Open', 'Click'],
  'complained@example.net': ['Delivery', 'SpamComplaint'],
  'delayed@example.net': ['Bounce', 'Delivery'],
  'bounced@example.net': ['Bounce'],
  'slow@example.net': [],
})) {
  test(`${address} is reported as ${expected.join(', ') || 'nothing'}`, async (t) => {
    const records = await postedAbout(t, address, expected.length);
    assert.deepEqual(
      records.map((record) => record['RecordType']),
      expected,
    );
    for (const record of records) {
      assert.deepEqual(record['Metadata'], { email: 'em_1' });
      assert.equal(record['Recipient'] ?? record['Email'], address);
    }
  });
}

test('sends records and SMTP replies that are classified as the requested bounce reason', async (t) => {
  for (const reason of BOUNCE_REASONS.filter((each) => each !== 'provider_suppressed')) {
    const [record] = await postedAbout(t, `bounced+${reason}@example.net`, 1);
    const callback = parsePostmarkCallback(record, () => false, 'broadcast');
    assert.ok(callback.is === 'feedback', reason);
    assert.equal(callback.feedback.bounceReason, reason);
    assert.equal(classifyBounce(bounceOf(reason).reply).reason, reason);
  }
  assert.equal(classifyBounce(bounceOf('provider_suppressed').reply).reason, 'provider_suppressed');
});

test('returns the same reports in message details and callbacks', async (t) => {
  const { hits, target } = await receiver(t);
  const { postmark, postmarkUrl } = await start(t, { deliveryCallback: target });
  const locals = ['opened', 'clicked', 'complained', 'delayed', 'bounced+mailbox_full', 'bounced+unknown', 'plain'];
  const sent = await postmark.sendEmail(
    mail({
      To: locals.map((local) => `${local}@example.net`).join(', '),
      HtmlBody: '<a href="https://a.example/">',
      Metadata: { email: 'em_1' },
    }),
  );
  await until(() => (hits.length >= 12 ? hits : undefined));
  const posted = hits.map(({ body }) => parsePostmarkCallback(body, () => false, 'broadcast'));
  const { reports } = at(postmarkUrl, 5, TOKEN);
  const reported = (await reports?.('em_1', sent.MessageID)) ?? [];
  const byKey = (a: Feedback, b: Feedback) => a.dedupeKey.localeCompare(b.dedupeKey);
  assert.equal(reported.length, 12);
  assert.deepEqual(
    reported.toSorted(byKey),
    posted
      .map((callback) => {
        const { claim, ...report } = (callback as { feedback: Feedback }).feedback;
        assert.equal(claim?.isSigned, false);
        return report;
      })
      .toSorted(byKey),
  );
});

test('retries a callback after 500 and a broken connection, with the same trace id', async (t) => {
  for (const status of [500, 0]) {
    const { hits, target } = await receiver(t, status, status, 204);
    const { postmark } = await start(t, { deliveryCallback: target });
    await postmark.sendEmail(mail());
    await settled(hits, 3);
    assert.equal(hits.length, 3, `after ${status}`);
    assert.equal(new Set(hits.map(({ headers }) => headers['x-pm-webhook-trace-id'])).size, 1);
    assert.equal(new Set(hits.map(({ body }) => JSON.stringify(body))).size, 1);
    assert.deepEqual(
      hits.map(({ headers }) => headers['x-pm-retries-remaining']),
      ['2', '1', '0'],
    );
  }
});

test('drops a callback after 401, or after its last retry', async (t) => {
  for (const [status, hits] of [
    [401, 1],
    [500, 3],
  ] as const) {
    const target = await receiver(t, status);
    const { postmark } = await start(t, { deliveryCallback: target.target });
    await postmark.sendEmail(mail());
    await settled(target.hits, hits);
    assert.equal(target.hits.length, hits, `after ${status}`);
  }
});
