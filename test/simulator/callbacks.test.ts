import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { mail, start, until } from './start.ts';

interface Hit {
  readonly url: string;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Record<string, unknown>;
  readonly at: number;
}

/** Answers each callback with the next of these statuses, the last one for ever; 0 breaks the connection. */
async function receiver(t: TestContext, ...statuses: number[]) {
  const hits: Hit[] = [];
  const open = { now: 0, most: 0 };
  const server = createServer((request, response) => {
    open.most = Math.max(open.most, ++open.now);
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { url = '', headers } = request;
      hits.push({ url, headers, body: JSON.parse(body) as Hit['body'], at: performance.now() });
      const status = statuses[Math.min(hits.length, statuses.length) - 1] ?? 200;
      setTimeout(() => {
        open.now--;
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
  return { hits, open, target: { url, user: 'postmark', password: 'pass:wörd' } };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 200));

test('a delivery is posted for each recipient that takes its mail, and no other', async (t) => {
  const { hits, target } = await receiver(t);
  const { postmark, mailer } = await start(t, { deliveryCallback: target });
  const { MessageID, SubmittedAt } = await postmark.sendEmail(
    mail({
      To: 'Plain <Plain@example.net>, delivered@example.net, plain@EXAMPLE.net',
      Cc: 'bounced+mailbox_full@example.net, complained@example.net, opened@example.net',
      Bcc: 'clicked@example.net, delayed@example.net, slow@example.net',
      Tag: 'welcome',
      Metadata: { email: 'em_1', call: 'call_1' },
    }),
  );
  await mailer.sendMail({ from: 'a@example.com', to: 'smtp@example.net', text: 'x' });
  await settled();

  assert.deepEqual(hits.map(({ body }) => body['Recipient']).sort(), ['delivered@example.net', 'plain@EXAMPLE.net']);
  for (const { url, headers, body } of hits) {
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

test('what the details tell is the same event as what is posted', async (t) => {
  const { hits, target } = await receiver(t);
  const { postmark } = await start(t, { deliveryCallback: target });
  const { MessageID } = await postmark.sendEmail(mail());
  const { body } = await until(() => hits[0]);
  const { MessageEvents } = await postmark.getOutboundMessageDetails(MessageID);
  assert.equal(MessageEvents[0]?.ReceivedAt, body['DeliveredAt']);
});

test('a callback is tried again after 5xx, 429, 408 and a broken connection, with the same trace', async (t) => {
  for (const status of [500, 503, 429, 408, 0]) {
    const { hits, target } = await receiver(t, status, status, 204);
    const { postmark } = await start(t, { deliveryCallback: target });
    await postmark.sendEmail(mail());
    await until(() => hits[2]);
    await settled();
    assert.equal(hits.length, 3, `after ${status}`);
    assert.equal(new Set(hits.map(({ headers }) => headers['x-pm-webhook-trace-id'])).size, 1);
    assert.equal(new Set(hits.map(({ body }) => JSON.stringify(body))).size, 1);
    assert.deepEqual(
      hits.map(({ headers }) => headers['x-pm-retries-remaining']),
      ['2', '1', '0'],
    );
    const [first, second, third] = hits.map(({ at }) => at) as [number, number, number];
    assert.ok(second - first >= 18 && third - second >= 38, 'the waits grow');
  }
});

test('a callback is dropped at other 4xx, and when its tries are used up', async (t) => {
  for (const [status, hits] of [
    [401, 1],
    [404, 1],
    [422, 1],
    [500, 3],
  ] as const) {
    const target = await receiver(t, status);
    const { postmark } = await start(t, { deliveryCallback: target.target });
    await postmark.sendEmail(mail());
    await settled();
    assert.equal(target.hits.length, hits, `after ${status}`);
  }
});

test('many callbacks arrive, few at a time', async (t) => {
  const { hits, open, target } = await receiver(t);
  const { postmark } = await start(t, { deliveryCallback: target });
  for (let i = 0; i < 3; i++) await postmark.sendEmailBatch(Array.from({ length: 500 }, () => mail()));
  await until(() => (hits.length === 1_500 ? hits : undefined));
  assert.equal(new Set(hits.map(({ body }) => body['MessageID'])).size, 1_500);
  assert.ok(open.most <= 20, `${open.most} at a time`);
});
