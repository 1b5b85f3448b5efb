import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chat, chatSimulator, metaAt, twilioAt } from './chat.ts';
import { recordingServer } from './servers.ts';

const USER_ID = 'US.13491208655302741918';

describe('a message to a user id', { concurrency: true }, () => {
  test('is sent to Meta with a recipient and without `to`', async (t) => {
    const { url, requests } = await recordingServer(t, { body: { messages: [{ id: 'wamid.1' }] } });
    await metaAt(url).send(chat({ text: 'x' }, { to: USER_ID }));
    const body = JSON.parse(requests[0]?.body.toString() ?? '') as { to?: unknown; recipient?: unknown };
    assert.deepEqual([body.to, body.recipient], [undefined, USER_ID]);
  });

  for (const [name, at] of Object.entries({ Meta: metaAt, Twilio: twilioAt })) {
    test(`reaches the user through ${name}`, async (t) => {
      const { chatUrl, inbox } = await chatSimulator(t);
      const { kind } = await at(chatUrl).send(chat({ text: 'x' }, { to: USER_ID }));
      assert.equal(kind, 'sent');
      assert.deepEqual(
        (await inbox()).map(({ to }) => to),
        [USER_ID],
      );
    });
  }
});
