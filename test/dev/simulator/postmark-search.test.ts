import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/folder.ts';
import { mail, start, TOKEN, until } from './start.ts';

interface Found {
  TotalCount: number;
  Messages: { MessageID: string; Subject: string; Metadata: Record<string, string> }[];
  ErrorCode?: number;
  Message?: string;
}

async function search(url: string, query: string): Promise<Found> {
  const answer = await fetch(`${url}/messages/outbound?${query}`, { headers: { 'x-postmark-server-token': TOKEN } });
  return answer.json() as Promise<Found>;
}

test('messages are found by one field of their metadata', async (t) => {
  const { postmark, postmarkUrl } = await start(t);
  const calls = ['call_a', 'call_b', 'call_a'];
  const ids: string[] = [];
  for (const [i, call] of calls.entries())
    ids.push((await postmark.sendEmail(mail({ Metadata: { email: `em_${i}`, Call: call } }))).MessageID);

  const found = await search(postmarkUrl, 'count=10&offset=0&metadata_call=call_a');
  assert.equal(found.TotalCount, 2);
  assert.deepEqual(
    found.Messages.map((message) => message.MessageID),
    [ids[2], ids[0]],
    'newest first',
  );
  assert.deepEqual(found.Messages[0]?.Metadata, { email: 'em_2', Call: 'call_a' });
  assert.deepEqual(await search(postmarkUrl, 'count=10&offset=0&metadata_call=CALL_A'), {
    TotalCount: 0,
    Messages: [],
  });
  assert.deepEqual(await search(postmarkUrl, 'count=10&offset=0&metadata_other=call_a'), {
    TotalCount: 0,
    Messages: [],
  });
});

test('the SDK reads a found message in full', async (t) => {
  const { postmark, mailer } = await start(t);
  await mailer.sendMail({ from: 'a@example.com', to: 'to@example.net', subject: 'By SMTP', text: 'x' });
  const { MessageID } = await postmark.sendEmail(
    mail({ To: '"To, the" <to@example.net>', Cc: 'cc@example.net', Tag: 'welcome', MessageStream: 'news' }),
  );
  const { TotalCount, Messages } = await postmark.getOutboundMessages({
    recipient: 'TO@example.net',
    tag: 'welcome',
    ...{ messagestream: 'news' },
  });
  assert.equal(TotalCount, 1);
  const { ReceivedAt, ...message } = Messages[0] ?? { ReceivedAt: '' };
  assert.match(ReceivedAt, /\.\d{7}Z$/);
  assert.deepEqual(message, {
    Tag: 'welcome',
    MessageID,
    MessageStream: 'news',
    To: [{ Email: 'to@example.net', Name: 'To, the' }],
    Cc: [{ Email: 'cc@example.net', Name: '' }],
    Bcc: [],
    Recipients: ['to@example.net', 'cc@example.net'],
    From: 'sender@example.com',
    Subject: 'Hello',
    Attachments: [],
    Status: 'Sent',
    TrackOpens: false,
    TrackLinks: 'None',
    Metadata: {},
    Sandboxed: false,
  });
});

test('pages follow one another', async (t) => {
  const { postmark, postmarkUrl } = await start(t);
  await postmark.sendEmailBatch(
    Array.from({ length: 25 }, (_, i) => mail({ Subject: `${i}`, Tag: i < 20 ? 'x' : 'y' })),
  );
  const subjects = async (query: string) => {
    const { TotalCount, Messages } = await search(postmarkUrl, query);
    return [TotalCount, ...Messages.map((message) => message.Subject)];
  };
  assert.deepEqual(await subjects('count=2&offset=0'), [25, '24', '23']);
  assert.deepEqual(await subjects('count=2&offset=24&messagestream=outbound'), [25, '0']);
  assert.deepEqual(await subjects('count=2&offset=18&tag=x'), [20, '1', '0']);
  assert.deepEqual(await subjects('count=2&offset=25'), [25]);
});

test('a query that cannot be answered is an error that says why', async (t) => {
  const { postmarkUrl } = await start(t);
  for (const [query, reason] of [
    ['offset=0', /count must be a whole number from 1 to 500/],
    ['count=501&offset=0', /count/],
    ['count=5&offset=-1', /offset/],
    ['count=500&offset=9501', /at most 10000 together/],
    ['count=5&offset=0&metadata_a=1&metadata_b=2', /only one metadata field/],
    ['count=5&offset=0&subject=Hello', /cannot filter by subject/],
    ['count=5&offset=0&tag=a&tag=b', /tag must be given once/],
  ] as const) {
    const { ErrorCode, Message } = await search(postmarkUrl, query);
    assert.equal(ErrorCode, 700, query);
    assert.match(Message ?? '', reason);
  }
});

test('search lags behind by as much as the switch says', async (t) => {
  const { postmark, postmarkUrl, behave } = await start(t);
  await behave({ search_lag_ms: 150 });
  await postmark.sendEmail(mail({ Metadata: { call: 'c' } }));
  const query = 'count=1&offset=0&metadata_call=c';
  assert.equal((await search(postmarkUrl, query)).TotalCount, 0);
  const found = await until(async () => {
    const answer = await search(postmarkUrl, query);
    return answer.TotalCount === 1 ? answer : undefined;
  });
  assert.equal(found.Messages.length, 1);
});

test('details tell the events, from the moment they happen', async (t) => {
  const { postmark } = await start(t, { times: { report: 3_000 } });
  const { MessageID } = await postmark.sendEmail(
    mail({ To: 'plain@example.net, bounced+mailbox_full@example.net', HtmlBody: '<p>x' }),
  );
  const early = await postmark.getOutboundMessageDetails(MessageID);
  assert.deepEqual([early.TextBody, early.HtmlBody, early.MessageEvents], ['Hi.', '<p>x', []]);
  const events = await until(async () => {
    const { MessageEvents } = await postmark.getOutboundMessageDetails(MessageID);
    return MessageEvents.length > 1 ? MessageEvents : undefined;
  });
  assert.deepEqual(
    events.map(({ Recipient, Type }) => [Recipient, Type]),
    [
      ['plain@example.net', 'Delivered'],
      ['bounced+mailbox_full@example.net', 'Bounced'],
    ],
  );
  assert.equal(Date.parse(events[0]?.ReceivedAt ?? '') - Date.parse(early.ReceivedAt), 3_000);
});

test('a bounce is found by the number that the details give, once it has happened, and after a restart', async (t) => {
  const folder = await temporaryFolder(t);
  const first = await start(t, { folder, times: { report: 100 } });
  const To = 'plain@example.net, bounced+mailbox_full@example.net, complained@example.net';
  const { MessageID } = await first.postmark.sendEmail(mail({ To, Tag: 'welcome', From: 'Acme <a@example.com>' }));
  const events = await until(async () => {
    const { MessageEvents } = await first.postmark.getOutboundMessageDetails(MessageID);
    return MessageEvents.length === 4 ? MessageEvents : undefined;
  });
  const ids = events.map(({ Details }) => (Details as { BounceID?: number }).BounceID);
  const [bounce, complaint] = ids.filter((id) => id !== undefined);
  assert.ok(bounce !== undefined && complaint !== undefined);
  await first.close();

  const { postmark } = await start(t, { folder, times: { report: 100 } });
  const { Type, Email, From, Subject, Tag, Details, Inactive } = await postmark.getBounce(bounce);
  assert.deepEqual(
    [Type, Email, From, Subject, Tag, Inactive],
    ['SoftBounce', 'bounced+mailbox_full@example.net', 'a@example.com', 'Hello', 'welcome', false],
  );
  assert.match(Details, /^smtp;552 5\.2\.2 /);
  assert.equal((await postmark.getBounce(complaint)).Type, 'SpamComplaint');
  for (const id of [bounce - 1, 7, bounce + 64])
    await assert.rejects(postmark.getBounce(id), { code: 407, statusCode: 422 });
});

test('details of what is no Postmark message are an error', async (t) => {
  const { postmark, mailer, inbox } = await start(t);
  await mailer.sendMail({ from: 'a@example.com', to: 'b@example.net', subject: 'By SMTP', text: 'x' });
  const [message] = await inbox();
  for (const id of [message?.id ?? '', 'nothing']) {
    await assert.rejects(postmark.getOutboundMessageDetails(id), { code: 701, statusCode: 422 });
  }
});
