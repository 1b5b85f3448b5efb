import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { emptyHome, startSendwright } from '../support/start.ts';
import { simulator } from '../providers/simulator.ts';
import { ended, killBeforeTheAnswer, numbers, taken } from './chat.ts';

const TO = '+4915123456001';

describe('a worker killed before the provider has answered, and no report comes', { concurrency: true }, () => {
  test('Twilio is asked: the message arrives once', async (t) => {
    const unreachable = { PUBLIC_URL: 'http://127.0.0.1:1' };
    const dev = await (await startSendwright(t, await emptyHome(), unreachable)).dev();
    const inbox = dev.inbox_url ?? '';
    const id = await killBeforeTheAnswer(dev, inbox, (await numbers(dev)).twilio, TO);
    await ended(dev, id, 'sent');
    assert.equal(await taken(inbox, TO), 1);
  });

  for (const [policy, status, times] of [
    ['retry', 'sent', 2],
    ['fail', 'failed', 1],
  ] as const) {
    test(`Meta cannot be asked: AMBIGUOUS_SEND=${policy} decides, it has it ${times === 1 ? 'once' : 'twice'}`, async (t) => {
      const { postmarkUrl, inboxUrl } = await simulator(t);
      const meta = { META_ACCESS_TOKEN: 'token', META_BASE_URL: postmarkUrl, AMBIGUOUS_SEND: policy };
      const dev = await (await startSendwright(t, await emptyHome(), meta)).dev();
      const id = await killBeforeTheAnswer(dev, inboxUrl, (await numbers(dev)).meta, TO);
      await ended(dev, id, status);
      assert.equal(await taken(inboxUrl, TO), times);
    });
  }
});
