import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { noLimits } from '../../src/intake/emails.ts';
import { sendSms } from '../../src/intake/sms.ts';
import { projectInboundSms } from '../../src/projection/inbound-sms.ts';
import { UNLIMITED_RECEIVED } from '../../src/projection/received-limit.ts';
import { projectMessageReports } from '../../src/projection/messages.ts';
import type { ChatReport } from '../../src/providers/chat-provider.ts';
import { findMessage } from '../../src/store/messages/messages.ts';
import { deleteSender } from '../../src/store/sms/senders.ts';
import { contents } from '../support/contents.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(8);

let count = 0;

const deps = { pool, wakeRelay: () => undefined, limits: noLimits(), contents };

/** An SMS to a recipient of its own, from a sender of its own. */
async function accepted() {
  const unique = String(1_000 + ++count);
  const [from, to] = [`+1202555${unique}`, `+4915123${unique}0`];
  await addSender(pool, orgId, from, []);
  const request = { from, to, text: 'Grüße', tags: [], scheduled_at: null };
  const { id } = await sendSms(deps, { orgId }, request);
  const provider = new ScriptedChat();
  const again = async () => (await sendSms(deps, { orgId }, request)).id;
  return { id, from, to, provider, again, ...chatHarness(pool, provider) };
}

const found = async (id: string) =>
  (await findMessage(pool, contents, orgId, 'sms', id)) ?? assert.fail('there is no such SMS');
const timeline = async (id: string) => (await found(id)).events.map(({ type }) => type);

function inbound({ from, to }: { from: string; to: string }, text: string) {
  const sms = { from: to, to: from, messagingServiceSid: null, text, optOutType: null };
  return projectInboundSms(pool, { ...sms, providerMessageId: `SM${++count}` }, UNLIMITED_RECEIVED);
}

describe('an SMS is sent', () => {
  test('with sender, recipient and text', async () => {
    const { id, from, to, provider, deliverSms } = await accepted();
    assert.deepEqual(await deliverSms(id), { state: 'ended', status: 'sent', provider: 'twilio' });
    const [given = assert.fail()] = provider.given;
    assert.deepEqual([given.id, given.from, given.to, given.content.text], [id, from, to, 'Grüße']);
    assert.deepEqual(await timeline(id), ['sms.queued', 'sms.sent']);
  });

  for (const [change, status] of [
    ['delivered', 'delivered'],
    ['undelivered', 'undelivered'],
    ['failed', 'failed'],
  ] as const) {
    test(`and becomes ${status} by the report of its provider`, async () => {
      const { id, to, deliverSms } = await accepted();
      await deliverSms(id);
      const report: ChatReport = {
        ...{ change, messageId: id, providerMessageId: 'twilio 1', dedupeKey: `1 ${change}`, endpoints: { to } },
        ...(change !== 'delivered' && { error: 'No.', errorCode: '30003' }),
      };
      assert.equal(await projectMessageReports(pool, 'twilio', [report]), true);
      const message = await found(id);
      assert.deepEqual([message.status, message.error], [status, change === 'delivered' ? null : 'No.']);
      assert.equal((await timeline(id)).at(-1), `sms.${status}`);
    });
  }
});

describe('an SMS is not sent', () => {
  test('when its sender is no longer connected', async () => {
    const { id, from, provider, deliverSms } = await accepted();
    await deleteSender(pool, orgId, from);
    assert.deepEqual(await deliverSms(id), { state: 'ended', status: 'failed' });
    assert.equal(provider.given.length, 0);
  });

  test('after STOP to its sender, and again after START', async () => {
    const pair = await accepted();
    const other = await accepted();
    await inbound(pair, 'STOP');
    assert.deepEqual(await pair.deliverSms(pair.id), { state: 'ended', status: 'suppressed' });
    assert.equal(pair.provider.given.length, 0);
    assert.deepEqual(await timeline(pair.id), ['sms.queued', 'sms.suppressed']);
    assert.equal((await other.deliverSms(other.id)).state, 'ended');
    assert.equal(other.provider.given.length, 1);
    await inbound(pair, 'START');
    const later = await pair.again();
    assert.deepEqual(await pair.deliverSms(later), { state: 'ended', status: 'sent', provider: 'twilio' });
  });

  test('after Twilio has refused one because the recipient opted out', async () => {
    const { id, provider, again, deliverSms } = await accepted();
    provider.acts.push({ kind: 'refused', detail: 'The recipient has opted out.', code: '21610' });
    assert.equal((await found(id)).status, 'queued');
    await deliverSms(id);
    assert.equal((await found(id)).status, 'failed');
    const later = await again();
    assert.deepEqual(await deliverSms(later), { state: 'ended', status: 'suppressed' });
    assert.equal(provider.given.length, 1);
  });
});

test('an SMS is sent after a refusal of an earlier one for another reason than an opt-out', async () => {
  const { id, provider, again, deliverSms } = await accepted();
  provider.acts.push({ kind: 'refused', detail: 'No such number.', code: '21211' });
  await deliverSms(id);
  await deliverSms(await again());
  assert.equal(provider.given.length, 2);
});
