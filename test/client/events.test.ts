import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WebhookEvent } from '../../client/index.ts';
import { makeMetadataSigner } from '../../src/domain/email/metadata-signature.ts';
import { harness, ScriptedProvider } from '../delivery/harness.ts';
import { POSTMARK_AUTHORIZATION, SECRET_KEY, useService } from '../http/service.ts';
import { BOUNCE, CLICK, COMPLAINT, DELIVERY, OPEN, SUBSCRIPTION_CHANGE } from '../providers/postmark-records.ts';
import { assertPresent } from './always-present.ts';

const service = await useService();
const ours = await service.organization();
await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });

/** Asserts that the email has an event of the type, with every field that the client's types promise. */
async function assertComplete(id: string, type: string): Promise<void> {
  const { rows } = await service.pool.query<{ data: object }>(
    'SELECT data FROM webhook_events WHERE message_id = $1 AND type = $2',
    [id, type],
  );
  assert.equal(rows.length, 1);
  for (const { data } of rows) assertPresent({ type, data });
}

const NO_WORDS = { Details: '', Description: '' };
const UNSUBSCRIBED = {
  ...SUBSCRIPTION_CHANGE,
  SuppressSending: true,
  SuppressionReason: 'ManualSuppression',
  Origin: 'Recipient',
};

for (const [type, record] of [
  ['email.delivery_delayed', { ...BOUNCE, ...NO_WORDS, Type: 'Transient', Inactive: false }],
  ['email.delivered', DELIVERY],
  ['email.opened', OPEN],
  ['email.clicked', CLICK],
  ['email.bounced', { ...BOUNCE, Details: 'smtp;550 5.1.1 There is no such user' }],
  ['email.bounced', { ...BOUNCE, ...NO_WORDS }],
  ['email.complained', COMPLAINT],
  ['email.unsubscribed', UNSUBSCRIBED],
] as const) {
  const isSilent = 'Details' in record && record.Details === '';
  test(`${type} has the fields that the client promises${isSilent ? ', also when the provider states no reason' : ''}`, async () => {
    const recipient = 'john@example.net';
    const id = await ours.sent({ to: recipient });
    const authorization = POSTMARK_AUTHORIZATION;
    const Metadata = { email: id, call: 'call_1', sig: makeMetadataSigner(SECRET_KEY).sign(id) };
    const json = { ...record, ...('Recipient' in record ? { Recipient: recipient } : { Email: recipient }), Metadata };
    const answer = await service.call('POST', '/callbacks/postmark', { json, headers: { authorization } });
    assert.equal(answer.status, 200);
    await assertComplete(id, type);
  });
}

for (const [type, detail] of [
  ['email.failed', 'The provider does not answer.'],
  ['email.rejected', ''],
] as const) {
  test(`${type} has the fields that the client promises`, async () => {
    const provider = new ScriptedProvider();
    if (type === 'email.rejected') provider.acts.push({ kind: 'rejected', detail });
    else provider.refuses = () => detail;
    const there = harness(service.pool, ours.id, [provider]);
    const member = await there.accept({ from_domain: ours.domain, from: `hello@${ours.domain}` });
    await there.deliverOne(member);
    await assertComplete(member.id, type);
  });
}

/** These lines must not compile. test/client/package.test.ts compiles the narrowing of an event by its type. */
export function misuse(event: WebhookEvent): void {
  // @ts-expect-error not every event is about an email
  console.log(event.data.emailId);
  if (event.type === 'email.sent') {
    // @ts-expect-error the recipient is optional in an event about the whole email
    const recipient: string = event.data.recipient;
    console.log(recipient);
  }
}
