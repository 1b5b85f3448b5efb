import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ChatRequest } from '../../client/index.ts';
import type { InboxChat } from '../../dev/simulator/inbox/message.ts';
import { clientOf, emptyHome, readInbox, runningWorkflows, startSendwright } from '../support/start.ts';
import { eventually } from '../support/eventually.ts';
import { ended, killBeforeTheAnswer, numbers, TIMEOUT_MS, taken } from './chat.ts';

// Concurrently: each mostly waits, in its own stack.
describe('chat-app messages', { concurrency: true }, () => {
  test('every type goes out by both providers, up to read, and one fails', async (t) => {
    const dev = await (await startSendwright(t, await emptyHome())).dev();
    const from = await numbers(dev);
    const link = 'https://files.example.com/a';
    const sendwright = clientOf(dev);
    const bodies: Omit<ChatRequest, 'to'>[] = [
      { text: 'Hello' },
      { type: 'template', template: { name: 'hello_world', language: 'en_US' } },
      { type: 'image', image: { link: `${link}.png`, caption: 'A picture' } },
      { type: 'document', document: { link } },
    ];
    for (const provider of ['twilio', 'meta'] as const) {
      for (const body of bodies) {
        const { id } = await sendwright.chatapp.send({ from: from[provider], to: '+491512345 0002', ...body });
        const { events } = await ended(dev, id, 'read');
        assert.deepEqual(
          events.map(({ type }) => type).sort(),
          ['chatapp.delivered', 'chatapp.queued', 'chatapp.read', 'chatapp.sent'],
          `${provider} ${JSON.stringify(body)}`,
        );
      }
      const { id } = await sendwright.chatapp.send({ from: from[provider], to: '+4915123450001', text: 'Hello' });
      const { error, error_code } = await ended(dev, id, 'failed');
      assert.match(String(error), new RegExp(String(error_code)));
    }
    const inbox = await readInbox<InboxChat>(dev);
    const received = inbox.filter(({ to }) => to === '+4915123450002');
    assert.equal(new Set(received.map(({ provider, type }) => `${provider} ${type}`)).size, 8);
  });

  test('a worker killed before a provider has answered: a report decides, and the message arrives once', async (t) => {
    const started = await startSendwright(t, await emptyHome());
    const dev = await started.dev();
    const inbox = dev.inbox_url ?? '';
    const from = await numbers(dev);
    for (const [sender, to] of [
      [from.twilio, '+4915123456001'],
      [from.meta, '+4915123456002'],
    ] as const) {
      // The worker is another process after each kill.
      const id = await killBeforeTheAnswer(await started.dev(), inbox, sender, to);
      await ended(dev, id, 'delivered');
      assert.equal(await taken(inbox, to), 1);
      const isDone = async () => (await runningWorkflows(dev)) === 0;
      await eventually('its workflow has ended without sending it again', isDone, TIMEOUT_MS);
      assert.equal(await taken(inbox, to), 1);
    }
  });
});
