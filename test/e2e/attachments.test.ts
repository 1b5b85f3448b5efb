import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { InboxMessage } from '../../dev/simulator/inbox/message.ts';
import { eventually } from '../support/eventually.ts';
import { clientOf, emptyHome, startSendwright } from '../support/start.ts';

const MB = 1_048_576;

test('files go from a request to the inbox by the provider that can carry them, and can be had again', async (t) => {
  const launched = await startSendwright(t, await emptyHome());
  const dev = await launched.dev();
  const sendwright = clientOf(dev);
  const send = async (to: string, contents: readonly Buffer[]): Promise<string> => {
    const attachments = contents.map((content, index) => ({
      filename: `${index}.png`,
      content: content.toString('base64'),
      content_id: index === 0 ? 'first' : null,
    }));
    const html = '<img src="cid:first">';
    return (await sendwright.emails.send({ from: dev.from, to, subject: 'Files', html, attachments })).id;
  };
  const arrived = (to: string) =>
    eventually(
      `an email for ${to} arrives`,
      async () => {
        const answer = await fetch(`${dev.inbox_url}/messages?to=${to}`);
        return ((await answer.json()) as InboxMessage[])[0];
      },
      30_000,
    );

  const small = [Buffer.from('an image'), randomBytes(50_000)];
  const large = [randomBytes(1_000), randomBytes(12 * MB)];
  const id = await send('small@example.net', small);
  await send('large@example.net', large);
  for (const [to, provider, contents] of [
    ['small@example.net', 'postmark', small],
    ['large@example.net', 'smtp', large],
  ] as const) {
    const message = await arrived(to);
    assert.equal(message.provider, provider, 'Postmark carries 10 MB');
    const shown = [...message.attachments].sort((a, b) => String(a.filename).localeCompare(String(b.filename)));
    assert.deepEqual(
      shown,
      contents.map((content, index) => ({
        filename: `${index}.png`,
        content_type: 'image/png',
        size: content.length,
        content_id: index === 0 ? 'first' : null,
      })),
    );
  }

  for (const [index, { download_url: url }] of (await sendwright.emails.attachments(id)).entries()) {
    assert.ok(url?.startsWith(dev.base_url), String(url));
    const answer = await fetch(url ?? '');
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(small[index] as Buffer));
  }
});
