import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { cancel, deliverChat, deliverSms, reschedule } from '../../workflows/index.ts';
import { useEnvironment } from './environment.ts';
import { FakeMessages } from './fake-messages.ts';
import { keepHistory } from './histories.ts';

const HOUR = 3_600_000;
const RETRY = { maximumAttempts: 4, initialInterval: 1_000, maximumInterval: 4_000 };

describe('workflows of chat-app messages and SMS', () => {
  const { env, now, startWorkers } = useEnvironment();
  let count = 0;

  for (const [channel, workflow, start] of [
    ['chat', deliverChat, { taskQueue: 'messages' }],
    ['sms', deliverSms, { taskQueue: 'messages' }],
    ['local chat', deliverChat, { taskQueue: 'chat', firstAttempt: 'local' }],
    ['local sms', deliverSms, { taskQueue: 'chat', firstAttempt: 'local' }],
  ] as const) {
    /** Delivers one message. @param dueAt Unix milliseconds; the workflow of an older version has no schedule */
    async function deliver(
      name: string,
      dueAt: number | null,
      act: (id: string, messages: FakeMessages) => Promise<unknown> = async () => undefined,
      answers: FakeMessages['answers'] = [],
    ) {
      const id = `${channel}_${++count}`;
      const messages = new FakeMessages(now);
      messages.answers.push(...answers);
      messages.accept(id, dueAt);
      const stop = await startWorkers({ chat: messages.messageActivities });
      try {
        const schedule = dueAt !== null && { version: 0, dueAt: new Date(dueAt).toISOString() };
        const { taskQueue, ...first } = start;
        const options = { workflowId: id, taskQueue, args: [{ id, retry: RETRY, ...schedule, ...first }] };
        const handle = await env().client.workflow.start(workflow, options as never);
        await act(id, messages);
        const result = await handle.result();
        await keepHistory(`${channel} ${name}`, handle);
        return { result, row: messages.row(id), handle };
      } finally {
        await stop();
      }
    }
    const signal = (id: string) => env().client.workflow.getHandle(id);

    test(`${channel}: a message without a schedule is sent, and names its provider`, async () => {
      const { result, row, handle } = await deliver('without a schedule', null);
      assert.deepEqual([result, row.attempts], ['sent', 1]);
      const { typedSearchAttributes } = await handle.describe();
      const found = typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
      assert.deepEqual(found, [['Provider', 'postmark']]);
    });

    test(`${channel}: a scheduled message is sent when it is due`, async () => {
      const dueAt = (await now()) + HOUR;
      const { result, row } = await deliver('scheduled', dueAt);
      assert.equal(result, 'sent');
      assert.ok((row.sentAt ?? 0) >= dueAt);
    });

    test(`${channel}: a rescheduled message is sent at its new time`, async () => {
      const began = await now();
      const dueAt = began + 3 * HOUR;
      const { result, row } = await deliver('rescheduled', began + HOUR, async (id, messages) => {
        messages.reschedule(id, dueAt);
        await signal(id).signal(reschedule, { version: 1, dueAt: new Date(dueAt).toISOString() });
      });
      assert.equal(result, 'sent');
      assert.ok((row.sentAt ?? 0) >= dueAt);
    });

    test(`${channel}: a canceled message is not sent`, async () => {
      const { result, row } = await deliver('canceled', (await now()) + HOUR, async (id, messages) => {
        messages.cancel(id);
        await signal(id).signal(cancel);
      });
      assert.deepEqual([result, row.attempts], ['canceled', 0]);
    });

    test(`${channel}: a message fails when its attempts are used up`, async () => {
      const { result, row } = await deliver('attempts used up', null, undefined, ['busy', 'busy', 'busy', 'busy']);
      assert.deepEqual([result, row.attempts], ['failed', RETRY.maximumAttempts]);
    });
  }
});
