import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AttemptRecorder } from '../../src/delivery/contract.ts';
import { giveUp } from '../../src/delivery/endings.ts';
import { messageChannel } from '../../src/delivery/messages/channel.ts';
import type { ChatContent } from '../../src/domain/chat/chat.ts';
import type { WindowPolicy } from '../../src/domain/chat/window.ts';
import { projectMessageReports } from '../../src/projection/messages.ts';
import type { ChatReport } from '../../src/providers/chat-provider.ts';
import { acceptText, chatRow, chatTimeline, connect, TO } from '../store/chats.ts';
import { waitForBlocked } from '../support/locks.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, deliverChat, reportOf, ScriptedChat } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(4);
const FALLBACK = { fallback_template: { name: 'order_update', language: 'en_US' } };
const CODES = { twilio: '63016', meta: '131047' } as const;
const HOUR = 3_600;

interface Given {
  readonly provider?: 'twilio' | 'meta';
  /** Seconds since the recipient wrote; null for never. */
  readonly wroteAgo?: number | null;
  readonly content?: Partial<ChatContent>;
  readonly policy?: WindowPolicy;
}

async function accepted({ provider: name = 'twilio', wroteAgo = null, content = {}, policy = 'known' }: Given) {
  const { number } = await connect(pool, orgId, name);
  if (wroteAgo !== null) {
    await pool.query(
      `INSERT INTO chat_contacts (org_id, number, wa_number, last_inbound_at)
       VALUES ($1, $2, $3, now() - make_interval(secs => $4))`,
      [orgId, number, TO, wroteAgo],
    );
  }
  const id = await acceptText(pool, orgId, number, content);
  const provider = new ScriptedChat(name);
  const harness = chatHarness(pool, provider, { windowPolicy: policy });
  const sentTypes = () => provider.given.map(({ type }) => type);
  return { id, provider, sentTypes, ...harness };
}

describe('a text', () => {
  for (const [given, types, expected] of [
    [{ wroteAgo: 23 * HOUR }, ['text'], ['sent', null]],
    [{ wroteAgo: 23 * HOUR, content: FALLBACK }, ['text'], ['sent', null]],
    [{ wroteAgo: 25 * HOUR }, [], ['failed', 'window_closed']],
    [{ wroteAgo: 25 * HOUR, content: FALLBACK }, ['template'], ['sent', null]],
    [{ wroteAgo: 25 * HOUR, policy: 'off' }, ['text'], ['sent', null]],
    [{}, ['text'], ['sent', null]],
    [{ content: FALLBACK }, ['template'], ['sent', null]],
    [{ policy: 'enforce' }, [], ['failed', 'window_closed']],
  ] as const satisfies readonly (readonly [Given, readonly string[], readonly [string, string | null]])[]) {
    test(`with ${JSON.stringify(given)}: ${types.join() || 'no call'}, ${expected.join(' ')}`, async () => {
      const { id, deliver, sentTypes } = await accepted(given);
      await deliver(id);
      assert.deepEqual(sentTypes(), types);
      const { status, error_code } = await chatRow(pool, id);
      assert.deepEqual([status, error_code], expected);
    });
  }

  test('is sent as the template that the request gave', async () => {
    const { id, provider, deliver } = await accepted({ content: FALLBACK });
    await deliver(id);
    const { template, text } = provider.given[0]?.content ?? {};
    assert.deepEqual([template, text], [FALLBACK.fallback_template, null]);
  });
});

test('a look-up for the template does not take the text that Twilio reported as not delivered', async () => {
  const { id, provider, deliver, die, age, sentTypes } = await accepted({ wroteAgo: 60, content: FALLBACK });
  await deliver(id);
  // Messages of other tests have the same recipient, and their provider the same ids.
  await pool.query(`UPDATE chat_messages SET "to" = '+4915209999999' WHERE id = $1`, [id]);
  const error = { error: 'Outside of the window.', errorCode: CODES.twilio };
  const failed = {
    messageId: id,
    providerMessageId: 'twilio 1',
    dedupeKey: 'failed',
    change: 'failed',
    ...error,
  } as const;
  await projectMessageReports(pool, 'twilio', [failed]);
  await die(id, false);
  const asked: (boolean | undefined)[] = [];
  provider.find = async (_message, _created, isTaken) => {
    asked.push(await isTaken?.('twilio 1'));
    return asked.at(-1) === true ? undefined : 'twilio 1';
  };
  for (let attempt = 0; attempt < 3 && (await deliver(id)).state !== 'ended'; attempt++) await age(id, HOUR);
  assert.ok(asked.length > 0 && asked.every(Boolean), asked.join());
  assert.deepEqual(sentTypes(), ['text', 'template']);
});

for (const provider of ['twilio', 'meta'] as const) {
  describe(`a window that closes in flight at ${provider}`, () => {
    const refusal = { kind: 'refused', detail: 'Outside of the window.', code: CODES[provider] } as const;
    const report = (id: string, messageId: string, change: ChatReport['change']): ChatReport => ({
      ...reportOf(id, change, messageId),
      ...(change === 'failed' && { error: 'Outside of the window.', errorCode: CODES[provider] }),
    });
    const reported = (...reports: ChatReport[]) => projectMessageReports(pool, provider, reports);

    test('and is refused: the template is sent by the next attempt', async () => {
      const { id, deliver, outcomes, sentTypes, ...given } = await accepted({
        provider,
        wroteAgo: 60,
        content: FALLBACK,
      });
      given.provider.acts.push(refusal);
      const first = await deliver(id);
      assert.deepEqual([first.state, 'afterMs' in first && first.afterMs], ['again', 0]);
      assert.equal((await deliver(id)).state, 'ended');
      assert.deepEqual(sentTypes(), ['text', 'template']);
      assert.deepEqual(await outcomes(id), ['again', 'sent']);
      assert.equal((await chatRow(pool, id)).status, 'sent');
    });

    test('and is refused at the last attempt: the template is sent all the same', async () => {
      const { id, deps, deliver, sentTypes, ...given } = await accepted({ provider, wroteAgo: 60, content: FALLBACK });
      given.provider.acts.push(refusal);
      await deliver(id);
      const channel = messageChannel(deps, 'chatapp');
      assert.deepEqual(await giveUp(deps, channel, [id], 1, id), new Map([[id, 'queued']]));
      assert.equal((await deliver(id)).state, 'ended');
      assert.deepEqual(sentTypes(), ['text', 'template']);
    });

    test('and is refused: without a fallback the message fails with window_closed', async () => {
      const { id, deliver, ...given } = await accepted({ provider, wroteAgo: 60 });
      given.provider.acts.push(refusal);
      await deliver(id);
      const { status, error, error_code } = await chatRow(pool, id);
      assert.deepEqual([status, error, error_code], ['failed', 'Outside of the window.', 'window_closed']);
    });

    test('and is reported later: the template is sent once, and late reports of the text change nothing', async () => {
      const { id, deliver, outcomes, sentTypes } = await accepted({ provider, wroteAgo: 60, content: FALLBACK });
      await deliver(id);
      const [text, template] = [`${provider} 1`, `${provider} 2`];
      // A group has sent the text; its workflow has ended.
      await pool.query(`UPDATE chat_messages SET workflow_id = 'grp_1' WHERE id = $1`, [id]);
      assert.equal(await reported(report(id, text, 'failed')), true);
      assert.equal((await chatRow(pool, id)).status, 'queued');
      const { rows } = await pool.query('SELECT FROM outbox WHERE message_id = $1 AND action = $2', [
        id,
        'message_again',
      ]);
      assert.equal(rows.length, 1);
      // The same report again, and one that was overtaken.
      assert.equal(await reported(report(id, text, 'failed'), report(id, text, 'sent')), true);
      assert.equal((await deliver(id)).state, 'ended');
      assert.equal(await reported(report(id, text, 'failed')), true);
      await reported(report(id, template, 'delivered'));
      assert.deepEqual(sentTypes(), ['text', 'template']);
      assert.deepEqual(await outcomes(id), ['again', 'sent']);
      const { status, provider_message_id } = await chatRow(pool, id);
      assert.deepEqual([status, provider_message_id], ['delivered', template]);
      assert.deepEqual(await chatTimeline(pool, id), ['queued', 'sent', 'sent', 'delivered']);
    });

    // Meta cannot be asked for the text, and Twilio did not list it. Twilio's reports on it count only after those on the repeat.
    const outcome = { meta: 'risked', twilio: 'lost' }[provider];
    for (const isRepeatFirst of provider === 'meta' ? [true, false] : [true]) {
      test(`and is reported for the ${isRepeatFirst ? 'repeat and the text' : 'text'}, whose answer was lost: the template is sent`, async () => {
        const { id, deliver, die, outcomes, sentTypes } = await accepted({ provider, wroteAgo: 60, content: FALLBACK });
        await die(id, false);
        await pool.query('UPDATE attempts SET outcome = $2 WHERE message_id = $1', [id, outcome]);
        await deliver(id);
        const [text, repeat] = [`${provider} 0`, `${provider} 1`];
        if (isRepeatFirst) await reported(report(id, repeat, 'failed'));
        for (let count = 0; count < 2; count++) assert.equal(await reported(report(id, text, 'failed')), true);
        const { status, provider_message_id } = await chatRow(pool, id);
        assert.deepEqual([status, provider_message_id], ['queued', null]);
        assert.equal((await deliver(id)).state, 'ended');
        await reported(report(id, text, 'failed'));
        assert.equal((await chatRow(pool, id)).status, 'sent');
        assert.deepEqual(sentTypes(), ['text', 'template']);
        assert.deepEqual(await outcomes(id), [outcome, 'again', 'sent']);
      });
    }

    for (const later of ['sent', 'failed'] as const) {
      test(`and is reported later, beside a report of ${later} that waits for it: the template is sent`, async (t) => {
        const { id, deliver, sentTypes } = await accepted({ provider, wroteAgo: 60, content: FALLBACK });
        await deliver(id);
        const text = `${provider} 1`;
        const holder = await pool.connect();
        t.after(() => holder.release());
        await holder.query('BEGIN');
        await holder.query('SELECT FROM chat_messages WHERE id = $1 FOR UPDATE', [id]);
        const first = reported(report(id, text, 'failed'));
        await waitForBlocked(pool);
        const second = reported({ ...report(id, text, later), dedupeKey: 'another' });
        await waitForBlocked(pool, 2);
        await holder.query('COMMIT');
        await Promise.all([first, second]);
        const { status, provider_message_id } = await chatRow(pool, id);
        assert.deepEqual([status, provider_message_id], ['queued', null]);
        assert.equal((await deliver(id)).state, 'ended');
        assert.deepEqual(sentTypes(), ['text', 'template']);
      });
    }

    for (const before of [['sent'], []] as const) {
      test(`and is reported before the answer is applied, after ${before.join() || 'no other report'}: the template is sent`, async () => {
        const { id, deps, deliver, outcomes, sentTypes } = await accepted({
          provider,
          wroteAgo: 60,
          content: FALLBACK,
        });
        const recorder: AttemptRecorder = {
          ...deps.recorder,
          record: async (endings) => {
            await deps.recorder.record(endings);
            for (const change of [...before, 'failed'] as const) await reported(report(id, `${provider} 1`, change));
            // Repeated as after a lost acknowledgement of its commit.
            await deps.recorder.record(endings);
          },
        };
        const late = await deliverChat({ ...deps, recorder }, id);
        assert.deepEqual([late.state, 'afterMs' in late && late.afterMs], ['again', 0]);
        assert.equal((await chatRow(pool, id)).status, 'queued');
        assert.equal((await deliver(id)).state, 'ended');
        assert.deepEqual(sentTypes(), ['text', 'template']);
        assert.deepEqual(await outcomes(id), ['again', 'sent']);
        assert.equal((await chatRow(pool, id)).provider_message_id, `${provider} 2`);
      });
    }

    test('and is reported later: without a fallback, or of the template, the message fails with window_closed', async () => {
      const plain = await accepted({ provider, wroteAgo: 60 });
      const template = await accepted({ provider, content: FALLBACK });
      for (const { id, deliver } of [plain, template]) {
        await deliver(id);
        await reported(report(id, `${provider} 1`, 'failed'));
        const { status, error_code } = await chatRow(pool, id);
        assert.deepEqual([status, error_code], ['failed', 'window_closed']);
      }
    });

    test('and is reported after a report of sent replaced a lost answer: the template is sent', async () => {
      const { id, deliver, die, outcomes, sentTypes } = await accepted({ provider, wroteAgo: 60, content: FALLBACK });
      await die(id, true);
      await reported(report(id, `${provider} 1`, 'sent'));
      assert.deepEqual(await deliver(id), { state: 'ended', status: 'sent', provider });
      await reported(report(id, `${provider} 1`, 'failed'));
      assert.equal((await deliver(id)).state, 'ended');
      assert.deepEqual(sentTypes(), ['template']);
      assert.deepEqual(await outcomes(id), ['again', 'sent']);
      const { status, provider_message_id } = await chatRow(pool, id);
      assert.deepEqual([status, provider_message_id], ['sent', `${provider} 2`]);
    });

    test('and is reported while the call is under way: the message fails and is not sent again', async () => {
      const { id, deliver, sentTypes, ...given } = await accepted({ provider, wroteAgo: 60, content: FALLBACK });
      given.provider.acts.push(async (message) => {
        await reported(report(id, `${provider} 1`, 'sent'), report(id, `${provider} 1`, 'failed'));
        return given.provider.take(message);
      });
      await deliver(id);
      await deliver(id);
      assert.deepEqual(sentTypes(), ['text']);
      const { status, error_code } = await chatRow(pool, id);
      assert.deepEqual([status, error_code], ['failed', 'window_closed']);
    });
  });
}
