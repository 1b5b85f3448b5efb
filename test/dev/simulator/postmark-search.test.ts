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

test('finds messages by one field of their metadata, newest first', async (t) => {
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

test('returns pages by count and offset', async (t) => {
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

test('returns a bounce by the id in the message details, after a restart too', async (t) => {
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
